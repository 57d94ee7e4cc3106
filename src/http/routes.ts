import Router from '@koa/router'
import { HEALTH_ROUTES, type HealthRoutePorts } from './admin/health.routes.ts'
import { INBOX_ROUTES, type InboxRoutePorts } from './admin/inbox.routes.ts'
import { JOBS_ROUTES, type JobsRoutePorts } from './admin/jobs.routes.ts'
import { OPERATIONS_ROUTES, type OperationsRoutePorts } from './admin/operations.routes.ts'
import { PARCEL_LISTS_ROUTES, type ParcelListsRoutePorts } from './admin/parcel-lists.routes.ts'
import { PARCELS_ROUTES, type ParcelsRoutePorts } from './admin/parcels.routes.ts'
import { REPLICAS_ROUTES, type ReplicasRoutePorts } from './admin/replicas.routes.ts'
import { STORE_ROUTES, type StoreRoutePorts } from './admin/store.routes.ts'
import { DELIVERIES_ROUTES, type DeliveriesRoutePorts } from './delivery/deliveries.routes.ts'
import { ENDPOINTS_ROUTES, type EndpointsRoutePorts } from './delivery/endpoints.routes.ts'
import { EVENTS_ROUTES, type EventsRoutePorts } from './delivery/events.routes.ts'
import { STATUS_ROUTES, type StatusRoutePorts } from './history/status.routes.ts'
import { TOKEN_ROUTES, type TokenRoutePorts } from './history/token.routes.ts'
import { WEBHOOK_ROUTES } from './ingest/webhook.routes.ts'
import { UPSTREAM_ROUTES, type UpstreamRoutePorts } from './polling/upstream.routes.ts'
import type { Route, RouteRow, WithAuthorize } from './server/route.ts'

/** What the routes of the internal listener call. */
export type InternalPorts = WithAuthorize &
  HealthRoutePorts &
  InboxRoutePorts &
  JobsRoutePorts &
  OperationsRoutePorts &
  ParcelListsRoutePorts &
  ParcelsRoutePorts &
  ReplicasRoutePorts &
  StoreRoutePorts &
  DeliveriesRoutePorts &
  EndpointsRoutePorts &
  EventsRoutePorts &
  StatusRoutePorts &
  TokenRoutePorts &
  UpstreamRoutePorts

/** Every route of the internal listener. Portal pages and whatever else is served there get their rows here. */
export const INTERNAL_ROUTES: readonly Route<InternalPorts>[] = [
  ...TOKEN_ROUTES,
  ...STATUS_ROUTES,
  ...PARCEL_LISTS_ROUTES,
  ...PARCELS_ROUTES,
  ...EVENTS_ROUTES,
  ...ENDPOINTS_ROUTES,
  ...DELIVERIES_ROUTES,
  ...UPSTREAM_ROUTES,
  ...INBOX_ROUTES,
  ...JOBS_ROUTES,
  ...OPERATIONS_ROUTES,
  ...STORE_ROUTES,
  ...REPLICAS_ROUTES,
  ...HEALTH_ROUTES,
]

/** The table of routes: every address of both listeners. */
export const ROUTES: readonly RouteRow[] = [...WEBHOOK_ROUTES, ...INTERNAL_ROUTES]

export function createInternalRouter(ports: InternalPorts): Router {
  const router = new Router({ strict: true, sensitive: true })
  for (const { method, path, handle } of INTERNAL_ROUTES) router[method](path, handle(ports))
  return router
}

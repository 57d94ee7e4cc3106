import Router from '@koa/router'
import { BACKUPS_ROUTES } from './admin/backups.routes.ts'
import { CHECK_ROUTES } from './admin/check.routes.ts'
import { DOCUMENT_ROUTES, type DocumentRoutePorts } from './admin/document.routes.ts'
import { ERASURES_ROUTES } from './admin/erasures.routes.ts'
import { HEALTH_ROUTES, type HealthRoutePorts } from './admin/health.routes.ts'
import { INBOX_ROUTES } from './admin/inbox.routes.ts'
import { JOBS_ROUTES } from './admin/jobs.routes.ts'
import { OPERATIONS_ROUTES } from './admin/operations.routes.ts'
import { OVERVIEW_ROUTES } from './admin/overview.routes.ts'
import { PARCEL_LISTS_ROUTES } from './admin/parcel-lists.routes.ts'
import { PARCELS_ROUTES } from './admin/parcels.routes.ts'
import { REBUILD_ROUTES } from './admin/rebuild.routes.ts'
import { REFUSALS_ROUTES } from './admin/refusals.routes.ts'
import { RELOAD_ROUTES } from './admin/reload.routes.ts'
import { REPLICAS_ROUTES } from './admin/replicas.routes.ts'
import { RETENTION_ROUTES } from './admin/retention.routes.ts'
import { SECRETS_ROUTES } from './admin/secrets.routes.ts'
import { STORE_ROUTES } from './admin/store.routes.ts'
import { DELIVERIES_ROUTES, refuseMissing } from './delivery/deliveries.routes.ts'
import { ENDPOINTS_ROUTES } from './delivery/endpoints.routes.ts'
import { EVENTS_ROUTES, type EventsRoutePorts } from './delivery/events.routes.ts'
import { OPERATOR_ROUTES } from './delivery/operator.routes.ts'
import { STATUS_ROUTES, type StatusRoutePorts } from './history/status.routes.ts'
import { TOKEN_ROUTES, type TokenRoutePorts } from './history/token.routes.ts'
import { WEBHOOK_ROUTES } from './ingest/webhook.routes.ts'
import { UPSTREAM_ROUTES } from './polling/upstream.routes.ts'
import type { Route, RouteRow, WithAuthorize } from './server/route.ts'
import type { UseCases } from './use-cases.ts'

export type InternalPorts = WithAuthorize &
  UseCases &
  DocumentRoutePorts &
  HealthRoutePorts &
  EventsRoutePorts &
  StatusRoutePorts &
  TokenRoutePorts

const HISTORY = [...TOKEN_ROUTES, ...STATUS_ROUTES]
const DELIVERY = [...EVENTS_ROUTES, ...ENDPOINTS_ROUTES, ...DELIVERIES_ROUTES, ...OPERATOR_ROUTES]
const ADMIN = [
  ...PARCEL_LISTS_ROUTES,
  ...PARCELS_ROUTES,
  ...ERASURES_ROUTES,
  ...INBOX_ROUTES,
  ...REFUSALS_ROUTES,
  ...JOBS_ROUTES,
  ...OPERATIONS_ROUTES,
  ...OVERVIEW_ROUTES,
  ...REBUILD_ROUTES,
  ...STORE_ROUTES,
  ...SECRETS_ROUTES,
  ...BACKUPS_ROUTES,
  ...REPLICAS_ROUTES,
  ...RELOAD_ROUTES,
  ...CHECK_ROUTES,
  ...RETENTION_ROUTES,
  ...HEALTH_ROUTES,
  ...DOCUMENT_ROUTES,
]

export const INTERNAL_ROUTES: readonly Route<InternalPorts>[] = [...HISTORY, ...DELIVERY, ...UPSTREAM_ROUTES, ...ADMIN]

/** One area of the API. The OpenAPI document groups the routes by area. */
export interface Capability {
  readonly name: string
  readonly about: string
  readonly routes: readonly RouteRow[]
}

/** The table of routes: every route of both listeners, by area. */
export const CAPABILITIES: readonly Capability[] = [
  { name: 'history', about: "Parcels and their status: the carrier's own API", routes: HISTORY },
  { name: 'delivery', about: 'The feed, endpoints and what was delivered to them', routes: DELIVERY },
  { name: 'admin', about: 'Parcels as operators see them, the inbox, jobs, replicas and health', routes: ADMIN },
  { name: 'polling', about: 'The connection to the carrier', routes: UPSTREAM_ROUTES },
  { name: 'ingest', about: 'Where the carrier pushes', routes: WEBHOOK_ROUTES },
]

export const ROUTES: readonly RouteRow[] = CAPABILITIES.flatMap(({ routes }) => routes)

export function createInternalRouter(ports: InternalPorts): Router {
  const router = new Router({ strict: true, sensitive: true })
  for (const { method, path, handle } of INTERNAL_ROUTES) router[method](path, handle(ports))
  router.get('/relay/endpoints/:id/missing', refuseMissing(ports))
  return router
}

import Router from '@koa/router'
import { INBOX_ROUTES } from '../console/api/inbox.routes.ts'
import { PARCEL_LISTS_ROUTES, PARCELS_ROUTES } from '../console/api/parcels.routes.ts'
import { RELOAD_ROUTES } from '../console/api/reload.routes.ts'
import { OPERATIONS_ROUTES } from '../console/audit/operations.routes.ts'
import { DOCUMENT_ROUTES, type DocumentRoutePorts } from '../console/document/document.routes.ts'
import { OPERATOR_ROUTES } from '../console/events/operator.routes.ts'
import { OVERVIEW_ROUTES } from '../console/overview/overview.routes.ts'
import { HEALTH_ROUTES, type HealthRoutePorts } from '../core/http/admin/health.routes.ts'
import { DELIVERIES_ROUTES, refuseMissing } from '../core/http/delivery/deliveries.routes.ts'
import { ENDPOINTS_ROUTES } from '../core/http/delivery/endpoints.routes.ts'
import { EVENTS_ROUTES, type EventsRoutePorts } from '../core/http/delivery/events.routes.ts'
import { STATUS_ROUTES, type StatusRoutePorts } from '../core/http/history/status.routes.ts'
import { TOKEN_ROUTES, type TokenRoutePorts } from '../core/http/history/token.routes.ts'
import { WEBHOOK_ROUTES } from '../core/http/ingest/webhook.routes.ts'
import { UPSTREAM_ROUTES } from '../core/http/polling/upstream.routes.ts'
import type { Route, RouteRow, WithAuthorize } from '../core/http/server/route.ts'
import type { UseCases } from '../core/http/use-cases.ts'
import { REPLICAS_ROUTES } from '../server/replicas/replicas.routes.ts'
import { BACKUPS_ROUTES } from '../upkeep/backups/backups.routes.ts'
import { CHECK_ROUTES } from '../upkeep/check/check.routes.ts'
import { ERASURES_ROUTES } from '../upkeep/erasure/erasures.routes.ts'
import { JOBS_ROUTES } from '../upkeep/jobs/jobs.routes.ts'
import { STORE_ROUTES } from '../upkeep/moving/store.routes.ts'
import { REBUILD_ROUTES } from '../upkeep/rebuild/rebuild.routes.ts'
import { REFUSALS_ROUTES } from '../upkeep/refusals/refusals.routes.ts'
import { RETENTION_ROUTES } from '../upkeep/retention/retention.routes.ts'
import { SECRETS_ROUTES } from '../upkeep/secrets/secrets.routes.ts'

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

import Router from '@koa/router'
import { INBOX_ROUTES } from '../console/api/inbox.routes.ts'
import { PARCEL_LISTS_ROUTES, PARCELS_ROUTES } from '../console/api/parcels.routes.ts'
import { RELOAD_ROUTES, SECRETS_ROUTES } from '../console/api/reload.routes.ts'
import { DOCUMENT_ROUTES, type DocumentRoutePorts } from '../console/document/document.routes.ts'
import { OPERATIONS_ROUTES, OPERATOR_ROUTES } from '../console/events/operator.routes.ts'
import { OVERVIEW_ROUTES } from '../console/overview/overview.routes.ts'
import { HEALTH_ROUTES, type HealthRoutePorts, UPSTREAM_ROUTES } from '../core/http/admin/health.routes.ts'
import { DELIVERIES_ROUTES, refuseMissing } from '../core/http/delivery/deliveries.routes.ts'
import { ENDPOINTS_ROUTES } from '../core/http/delivery/endpoints.routes.ts'
import { EVENTS_ROUTES, type EventsRoutePorts } from '../core/http/delivery/events.routes.ts'
import { STATUS_ROUTES, type StatusRoutePorts, TOKEN_ROUTES, type TokenRoutePorts } from '../core/http/history/status.routes.ts'
import { WEBHOOK_ROUTES } from '../core/http/ingest/webhook.routes.ts'
import type { Capability, Route, WithAuthorize } from '../core/http/server/route.ts'
import type { UseCases } from '../core/http/use-cases.ts'
import { WINGS } from '../wings.ts'

export type InternalPorts = WithAuthorize &
  UseCases &
  DocumentRoutePorts &
  HealthRoutePorts &
  EventsRoutePorts &
  StatusRoutePorts &
  TokenRoutePorts

/** Every route of both listeners. */
export interface RouteTable {
  readonly internal: readonly Route<InternalPorts>[]
  readonly capabilities: readonly Capability[]
}

export async function loadRoutes(): Promise<RouteTable> {
  const offered = (await Promise.all(WINGS.map(async ({ routes }) => (await routes?.()) ?? []))).flat()
  const history = [...TOKEN_ROUTES, ...STATUS_ROUTES]
  const delivery = [...EVENTS_ROUTES, ...ENDPOINTS_ROUTES, ...DELIVERIES_ROUTES, ...OPERATOR_ROUTES]
  const parcels = [...PARCEL_LISTS_ROUTES, ...PARCELS_ROUTES, ...INBOX_ROUTES]
  const operations = [...OPERATIONS_ROUTES, ...OVERVIEW_ROUTES, ...RELOAD_ROUTES, ...SECRETS_ROUTES]
  const admin = [...parcels, ...operations, ...offered, ...HEALTH_ROUTES, ...DOCUMENT_ROUTES]
  return {
    internal: [...history, ...delivery, ...UPSTREAM_ROUTES, ...admin],
    capabilities: [
      { name: 'history', about: "Parcels and their status: the carrier's own API", routes: history },
      { name: 'delivery', about: 'The feed, endpoints and what was delivered to them', routes: delivery },
      { name: 'admin', about: 'Parcels as operators see them, the inbox, jobs, replicas and health', routes: admin },
      { name: 'polling', about: 'The connection to the carrier', routes: UPSTREAM_ROUTES },
      { name: 'ingest', about: 'Where the carrier pushes', routes: WEBHOOK_ROUTES },
    ],
  }
}

export function createInternalRouter(ports: InternalPorts, routes: RouteTable['internal']): Router {
  const router = new Router({ strict: true, sensitive: true })
  for (const { method, path, handle } of routes) router[method](path, handle(ports))
  router.get('/relay/endpoints/:id/missing', refuseMissing(ports))
  return router
}

import type { RequestListener } from 'node:http'
import Router from '@koa/router'
import type { Middleware } from 'koa'
import { RELOAD_ROUTES, SECRETS_ROUTES } from '../console/api/reload.routes.ts'
import { OPERATIONS_ROUTES, operatorEventsRoute } from '../console/audit/operations.routes.ts'
import { DOCUMENT_ROUTES, type DocumentRoutePorts } from '../console/document/document.routes.ts'
import { OPERATOR_ROUTES } from '../console/events/operator.routes.ts'
import { createOperatorEvents, type OperatorEventTable } from '../console/events/operator-events.ts'
import { overviewRoute } from '../console/overview/overview.routes.ts'
import { PARCEL_LISTS_ROUTES, PARCELS_ROUTES } from '../console/parcels/parcels.routes.ts'
import { createShowDocs, type DocsOptions } from '../console/portal/docs/docs.ts'
import type { SectionsOf } from '../console/portal/parcels/parcel.pages.ts'
import { createPortal, type PagesOf, type PortalOptions } from '../console/portal/portal.ts'
import { type ConcernTable, createConcernTable } from '../console/problems/concern-kinds.ts'
import type { Authenticate } from '../core/flow/admin/tokens/authenticate.ts'
import type { Serve } from '../core/flow/history/serve.ts'
import { HEALTH_ROUTES, type HealthRoutePorts, UPSTREAM_ROUTES } from '../core/http/admin/health.routes.ts'
import { DELIVERIES_ROUTES, refuseMissing } from '../core/http/delivery/deliveries.routes.ts'
import { ENDPOINTS_ROUTES } from '../core/http/delivery/endpoints.routes.ts'
import { EVENTS_ROUTES, type EventsRoutePorts } from '../core/http/delivery/events.routes.ts'
import {
  plainRequests,
  STATUS_ROUTES,
  type StatusRoutePorts,
  TOKEN_ROUTES,
  type TokenRoutePorts,
} from '../core/http/history/status.routes.ts'
import { WEBHOOK_ROUTES } from '../core/http/ingest/webhook.routes.ts'
import { createAuthorize, createHoldAccess } from '../core/http/server/authorize.ts'
import { EdgeError } from '../core/http/server/problems.ts'
import type { Capability, Route, WithAuthorize } from '../core/http/server/route.ts'
import { type AppOptions, createListener } from '../core/http/server/server.ts'
import type { UseCases } from '../core/http/use-cases.ts'
import { WINGS } from '../wings.ts'

type InternalPorts = WithAuthorize &
  UseCases &
  DocumentRoutePorts &
  HealthRoutePorts &
  EventsRoutePorts &
  StatusRoutePorts &
  TokenRoutePorts

/** Every route of both listeners. */
interface RouteTable {
  readonly internal: readonly Route<InternalPorts>[]
  readonly capabilities: readonly Capability[]
  readonly events: OperatorEventTable
  readonly concerns: ConcernTable
}

/** Every operator event: those of the core and the console, and those that wings offer. */
export async function loadOperatorEvents(): Promise<OperatorEventTable> {
  return createOperatorEvents(await Promise.all(WINGS.flatMap(({ events }) => events?.() ?? [])))
}

/** Every kind of concern: those of the core, and those that wings offer. */
export async function loadConcernTable(): Promise<ConcernTable> {
  return createConcernTable(await Promise.all(WINGS.flatMap(({ problemKinds }) => problemKinds?.() ?? [])))
}

export async function loadRoutes(): Promise<RouteTable> {
  const [events, concerns] = await Promise.all([loadOperatorEvents(), loadConcernTable()])
  const offers = await Promise.all(WINGS.map(async ({ routes, routesAfter }) => ({ after: routesAfter, routes: (await routes?.()) ?? [] })))
  const offered = (place?: 'deliveries' | 'parcels') => offers.flatMap(({ after, routes }) => (after === place ? routes : []))
  const history = [...TOKEN_ROUTES, ...STATUS_ROUTES]
  const delivery = [...EVENTS_ROUTES, ...ENDPOINTS_ROUTES, ...DELIVERIES_ROUTES, ...offered('deliveries'), ...OPERATOR_ROUTES]
  const parcels = [...PARCEL_LISTS_ROUTES, ...PARCELS_ROUTES, ...offered('parcels')]
  const operations = [operatorEventsRoute(events), ...OPERATIONS_ROUTES, overviewRoute(concerns), ...RELOAD_ROUTES, ...SECRETS_ROUTES]
  const admin = [...parcels, ...operations, ...offered(), ...HEALTH_ROUTES, ...DOCUMENT_ROUTES]
  return {
    events,
    concerns,
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

function createInternalRouter(ports: InternalPorts, routes: RouteTable['internal']): Router {
  const router = new Router({ strict: true, sensitive: true })
  for (const { method, path, handle } of routes) router[method](path, handle(ports))
  router.get('/relay/endpoints/:id/missing', refuseMissing(ports))
  return router
}

export interface InternalOptions
  extends AppOptions,
    Omit<InternalPorts, 'authorize' | 'holdAccess' | 'showDocs' | 'overview' | 'clock'>,
    Pick<DocsOptions, 'readDocs'> {
  readonly authenticate: Authenticate
  readonly serve: Pick<Serve, 'ask' | 'fromCache'>
  readonly portal: Pick<
    PortalOptions,
    'overview' | 'live' | 'config' | 'settings' | 'sessions' | 'formIds' | 'giveOnce' | 'readAsset' | 'version' | 'clock'
  >
}

const NOTHING: PagesOf<unknown> & SectionsOf<unknown> = () => []

/** Creates the listener for apps and operators. It serves the carrier's own API, /relay, health and metrics, and the portal. */
export async function createInternalListener(options: InternalOptions): Promise<RequestListener> {
  const { authenticate, countFailure } = options
  const [{ internal, capabilities, events }, offered, sections] = await Promise.all([
    loadRoutes(),
    Promise.all(WINGS.map(async ({ pages }) => (await pages?.()) ?? NOTHING)),
    Promise.all(WINGS.map(async ({ parcelSections }) => (await parcelSections?.()) ?? NOTHING)),
  ])
  const authorize = createAuthorize(authenticate, countFailure)
  const ports = {
    ...options,
    overview: options.portal.overview,
    clock: options.portal.clock,
    authorize,
    holdAccess: createHoldAccess(authenticate),
    showDocs: createShowDocs({ ...options.portal, readDocs: options.readDocs, capabilities }),
  }
  return createListener(options, (app) => {
    app.use(plainRequests(options)).use(continueAlways).use(createInternalRouter(ports, internal).routes())
    const parts = { ...options, ...options.portal }
    const portal = createPortal(
      { ...parts, wordEvent: events.word, parcelSections: sections.flatMap((sectionsOf) => sectionsOf(parts)) },
      offered.flatMap((pagesOf) => pagesOf(parts)),
    )
    app.use(portal.routes).use(portal.lost).use(methodNotAllowed())
  })
}

/** Answers every `Expect: 100-continue` with 100 at once, even if the route will then refuse the request without reading its body. */
const continueAlways: Middleware = async (ctx, next) => {
  if (ctx.get('Expect').toLowerCase() === '100-continue') ctx.res.writeContinue()
  await next()
}

/** Runs after the routers. If the path of a request exists only with other methods, throws `method_not_allowed`, even for OPTIONS or TRACE. */
function methodNotAllowed(): Middleware {
  return async (ctx, next) => {
    const matched: unknown = ctx.matched
    const allowed = Array.isArray(matched) ? matched.flatMap(methodsOf) : []
    if (allowed.length > 0 && !allowed.includes(ctx.method)) {
      const allow = [...new Set(allowed)].sort().join(', ')
      throw new EdgeError('method_not_allowed', `Allowed here: ${allow}.`, { allow })
    }
    await next()
  }
}

function methodsOf(layer: unknown): readonly string[] {
  if (typeof layer !== 'object' || layer === null || !('methods' in layer) || !Array.isArray(layer.methods)) return []
  return layer.methods.filter((method) => typeof method === 'string')
}

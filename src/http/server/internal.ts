import type { RequestListener } from 'node:http'
import type Router from '@koa/router'
import type { Middleware } from 'koa'
import type { Authenticate } from '../../flow/admin/authenticate.ts'
import type { ManageInbox } from '../../flow/admin/manage-inbox.ts'
import type { ManageJobs } from '../../flow/admin/manage-jobs.ts'
import type { ManageMoves } from '../../flow/admin/manage-moves.ts'
import type { ParcelCommands } from '../../flow/admin/parcel-commands.ts'
import type { ParcelQueries } from '../../flow/admin/parcel-queries.ts'
import type { FollowFeed } from '../../flow/delivery/follow-feed.ts'
import type { ManageDeliveries } from '../../flow/delivery/manage-deliveries.ts'
import type { ManageEndpoints } from '../../flow/delivery/manage-endpoints.ts'
import type { Serve } from '../../flow/history/serve.ts'
import { healthRoute, type OperationRouteOptions, operationRoutes } from '../admin/health.routes.ts'
import { inboxRoutes } from '../admin/inbox.routes.ts'
import { jobsRoutes } from '../admin/jobs.routes.ts'
import { type ParcelListsRouteOptions, parcelListsRoutes } from '../admin/parcel-lists.routes.ts'
import { parcelsRoutes } from '../admin/parcels.routes.ts'
import { type ReplicasRouteOptions, replicasRoutes } from '../admin/replicas.routes.ts'
import { storeRoutes } from '../admin/store.routes.ts'
import { deliveriesRoutes } from '../delivery/deliveries.routes.ts'
import { endpointsRoutes } from '../delivery/endpoints.routes.ts'
import { eventsRoutes } from '../delivery/events.routes.ts'
import { plainRequests } from '../history/plain-requests.ts'
import { statusRoutes } from '../history/status.routes.ts'
import { tokenRoutes } from '../history/token.routes.ts'
import { type UpstreamRouteOptions, upstreamRoutes } from '../polling/upstream.routes.ts'
import { createAuthorize, createHoldAccess } from './authorize.ts'
import type { CountFailure, VisitorOf } from './failures.ts'
import { type AppOptions, createListener } from './listener.ts'
import { methodNotAllowed } from './method-not-allowed.ts'

export interface InternalOptions extends AppOptions, OperationRouteOptions {
  readonly authenticate: Authenticate
  readonly serve: Pick<Serve, 'ask' | 'fromCache'>
  readonly visitorOf: VisitorOf
  readonly countFailure: CountFailure
  readonly manageInbox: ManageInbox
  readonly manageParcels: ParcelCommands
  readonly lookAtParcels: ParcelQueries
  readonly watchList: ParcelListsRouteOptions['watchList']
  readonly upstream: UpstreamRouteOptions['upstream']
  readonly listReplicas: ReplicasRouteOptions['listReplicas']
  readonly followFeed: FollowFeed
  readonly feedFollowersMax: number
  readonly manageEndpoints: ManageEndpoints
  readonly manageDeliveries: ManageDeliveries
  readonly manageJobs: ManageJobs
  readonly moves: Pick<ManageMoves, 'start' | 'progressOf'>
}

/** Every route of the internal listener. */
export function createInternalRoutes(options: InternalOptions): readonly Router[] {
  const { authenticate, serve, visitorOf, countFailure } = options
  const authorize = createAuthorize(authenticate, countFailure)
  return [
    statusRoutes({ serve, authorize }),
    tokenRoutes({ authenticate, visitorOf, countFailure }),
    operationRoutes(options),
    eventsRoutes({ ...options, authorize, holdAccess: createHoldAccess(authenticate) }),
    parcelListsRoutes({ ...options, authorize }),
    upstreamRoutes({ upstream: options.upstream, authorize }),
    parcelsRoutes({ manageParcels: options.manageParcels, authorize }),
    inboxRoutes({ manageInbox: options.manageInbox, authorize }),
    jobsRoutes({ ...options, authorize }),
    storeRoutes({ moves: options.moves, authorize }),
    replicasRoutes({ listReplicas: options.listReplicas, authorize }),
    deliveriesRoutes({ manageDeliveries: options.manageDeliveries, authorize }),
    endpointsRoutes({ manageEndpoints: options.manageEndpoints, authorize }),
  ]
}

/** The listener for apps and operators: the carrier's own API, /relay, health and metrics. */
export function createInternalListener(options: InternalOptions): RequestListener {
  const routers = createInternalRoutes(options)
  return createListener(options, (app) => {
    app.use(plainRequests(options)).use(healthRoute()).use(continueAlways)
    for (const router of routers) app.use(router.routes())
    app.use(methodNotAllowed())
  })
}

/** No route here refuses a body by its headers alone, so every `Expect: 100-continue` is granted. */
const continueAlways: Middleware = async (ctx, next) => {
  if (ctx.get('Expect').toLowerCase() === '100-continue') ctx.res.writeContinue()
  await next()
}

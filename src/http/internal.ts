import type { RequestListener } from 'node:http'
import type Router from '@koa/router'
import type { Middleware } from 'koa'
import type { Authenticate } from '../flow/authenticate.ts'
import type { FollowFeed } from '../flow/follow-feed.ts'
import type { LookAtParcels } from '../flow/look-at-parcels.ts'
import type { ManageDeliveries } from '../flow/manage-deliveries.ts'
import type { ManageEndpoints } from '../flow/manage-endpoints.ts'
import type { ManageInbox } from '../flow/manage-inbox.ts'
import type { ManageJobs } from '../flow/manage-jobs.ts'
import type { ManageParcels } from '../flow/manage-parcels.ts'
import type { Serve } from '../flow/serve.ts'
import { createAuthorize } from './authorize.ts'
import { deliveriesRoutes } from './deliveries.routes.ts'
import { endpointsRoutes } from './endpoints.routes.ts'
import { eventsRoutes } from './events.routes.ts'
import type { AdmitLogin, CountFailure } from './failures.ts'
import { healthRoute, type OperationRouteOptions, operationRoutes } from './health.routes.ts'
import { inboxRoutes } from './inbox.routes.ts'
import { jobsRoutes } from './jobs.routes.ts'
import { type AppOptions, createListener } from './listener.ts'
import { methodNotAllowed } from './method-not-allowed.ts'
import { type ParcelListsRouteOptions, parcelListsRoutes } from './parcel-lists.routes.ts'
import { parcelsRoutes } from './parcels.routes.ts'
import { plainQuestions } from './plain-questions.ts'
import { statusRoutes } from './status.routes.ts'
import { tokenRoutes } from './token.routes.ts'
import { type UpstreamRouteOptions, upstreamRoutes } from './upstream.routes.ts'

export interface InternalOptions extends AppOptions, OperationRouteOptions {
  readonly authenticate: Authenticate
  readonly serve: Pick<Serve, 'ask' | 'atHand'>
  readonly admitLogin: AdmitLogin
  readonly countFailure: CountFailure
  readonly manageInbox: ManageInbox
  readonly manageParcels: ManageParcels
  readonly lookAtParcels: LookAtParcels
  readonly watchList: ParcelListsRouteOptions['watchList']
  readonly upstream: UpstreamRouteOptions['upstream']
  readonly followFeed: FollowFeed
  readonly feedFollowersMax: number
  readonly manageEndpoints: ManageEndpoints
  readonly manageDeliveries: ManageDeliveries
  readonly manageJobs: ManageJobs
}

/** Every route of the internal listener. */
export function createInternalRoutes(options: InternalOptions): readonly Router[] {
  const { authenticate, serve, admitLogin, countFailure } = options
  const authorize = createAuthorize(authenticate, countFailure)
  return [
    statusRoutes({ serve, authorize }),
    tokenRoutes({ authenticate, admitLogin, countFailure }),
    operationRoutes(options),
    eventsRoutes({ ...options, authorize }),
    parcelListsRoutes({ ...options, authorize }),
    upstreamRoutes({ upstream: options.upstream, authorize }),
    parcelsRoutes({ manageParcels: options.manageParcels, authorize }),
    inboxRoutes({ manageInbox: options.manageInbox, authorize }),
    jobsRoutes({ manageJobs: options.manageJobs, authorize }),
    deliveriesRoutes({ manageDeliveries: options.manageDeliveries, authorize }),
    endpointsRoutes({ manageEndpoints: options.manageEndpoints, authorize }),
  ]
}

/** What apps and operators can reach: the carrier's own API, and what a process is asked by its keepers. */
export function createInternalListener(options: InternalOptions): RequestListener {
  const routers = createInternalRoutes(options)
  return createListener(options, (app) => {
    app.use(plainQuestions(options)).use(healthRoute()).use(continueAlways)
    for (const router of routers) app.use(router.routes())
    app.use(methodNotAllowed())
  })
}

/** Nothing here refuses a body by the headers alone, so whoever asks may send. */
const continueAlways: Middleware = async (ctx, next) => {
  if (ctx.get('Expect').toLowerCase() === '100-continue') ctx.res.writeContinue()
  await next()
}

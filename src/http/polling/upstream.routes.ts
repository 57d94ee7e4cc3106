import type Router from '@koa/router'
import type { Upstream } from '../../flow/polling/upstream.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentJson } from '../server/present.ts'
import { NO_QUERY } from '../server/query.ts'

export interface UpstreamRouteOptions {
  readonly upstream: Pick<Upstream, 'read'>
  readonly authorize: Authorize
}

/** GET /relay/upstream (scope `admin`): the state of the connection to the carrier. */
export function upstreamRoutes({ upstream, authorize }: UpstreamRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  routes.add('get', '/relay/upstream', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx) => presentJson(ctx, 200, await upstream.read()),
  })
  return routes.router
}

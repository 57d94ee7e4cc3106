import Router from '@koa/router'
import type { Upstream } from '../flow/upstream.ts'
import type { Authorize } from './authorize.ts'
import { presentJson } from './present.ts'

export interface UpstreamRouteOptions {
  readonly upstream: Pick<Upstream, 'read'>
  readonly authorize: Authorize
}

/** GET /relay/upstream (scope `admin`): how things stand with the carrier. */
export function upstreamRoutes({ upstream, authorize }: UpstreamRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  router.get('/relay/upstream', async (ctx) => {
    await authorize(ctx, 'admin')
    presentJson(ctx, 200, await upstream.read())
  })
  return router
}

import Router from '@koa/router'
import type { ManageParcels } from '../flow/manage-parcels.ts'
import type { Authorize } from './authorize.ts'
import { presentJson, type WithParams } from './present.ts'

export interface ParcelsRouteOptions {
  readonly manageParcels: ManageParcels
  readonly authorize: Authorize
}

/** What operators do to parcels, under /relay (scope `admin`). */
export function parcelsRoutes({ manageParcels, authorize }: ParcelsRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true, prefix: '/relay/parcels' })
  router.put('/:identifier/watch', async (ctx: WithParams) => {
    await authorize(ctx, 'admin')
    const watched = await manageParcels.watch(ctx.params.identifier ?? '')
    presentJson(ctx, watched.created ? 201 : 200, watched)
  })
  router.delete('/:identifier/watch', async (ctx: WithParams) => {
    await authorize(ctx, 'admin')
    presentJson(ctx, 200, await manageParcels.unwatch(ctx.params.identifier ?? ''))
  })
  router.post('/:identifier/refresh', async (ctx: WithParams) => {
    await authorize(ctx, 'admin')
    presentJson(ctx, 200, await manageParcels.refresh(ctx.params.identifier ?? ''))
  })
  return router
}

import Router from '@koa/router'
import type { Context } from 'koa'
import type { ManageParcels } from '../flow/manage-parcels.ts'
import type { Authorize } from './authorize.ts'

export interface ParcelsRouteOptions {
  readonly manageParcels: ManageParcels
  readonly authorize: Authorize
}

type WithParams = Context & { params: Record<string, string> }

/** What operators do to parcels, under /relay (scope `admin`). */
export function parcelsRoutes({ manageParcels, authorize }: ParcelsRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true, prefix: '/relay/parcels' })
  router.put('/:identifier/watch', async (ctx: WithParams) => {
    await authorize(ctx, 'admin')
    const watched = await manageParcels.watch(ctx.params.identifier ?? '')
    present(ctx, watched.created ? 201 : 200, watched)
  })
  router.post('/:identifier/refresh', async (ctx: WithParams) => {
    await authorize(ctx, 'admin')
    present(ctx, 200, await manageParcels.refresh(ctx.params.identifier ?? ''))
  })
  return router
}

function present(ctx: Context, status: number, body: object): void {
  ctx.status = status
  ctx.body = JSON.stringify(body)
  ctx.set('Content-Type', 'application/json')
  ctx.set('Cache-Control', 'no-store')
}

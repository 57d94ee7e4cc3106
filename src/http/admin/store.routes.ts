import type Router from '@koa/router'
import type { ManageMoves } from '../../flow/admin/manage-moves.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentJson } from '../server/present.ts'
import { NO_QUERY } from '../server/query.ts'
import { pathOfJob, presentJob } from './jobs.routes.ts'

const BODY_BYTES_MAX = 16 * 1024

export interface StoreRouteOptions {
  readonly moves: Pick<ManageMoves, 'start' | 'progressOf'>
  readonly authorize: Authorize
}

/** POST /relay/store/move (scope `admin`): starts the job that moves the store to another place. */
export function storeRoutes({ moves, authorize }: StoreRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  routes.add('post', '/relay/store/move', {
    scope: 'admin',
    query: NO_QUERY,
    bodyBytesMax: BODY_BYTES_MAX,
    answer: async (ctx, { app, body }) => {
      const job = await moves.start(body, app.username)
      ctx.set('Location', pathOfJob(job))
      presentJson(ctx, 202, presentJob(job, moves.progressOf(job.jobId)))
    },
  })
  return routes.router
}

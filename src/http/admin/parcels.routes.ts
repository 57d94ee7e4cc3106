import type Router from '@koa/router'
import type { ParcelCommands } from '../../flow/admin/parcel-commands.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentCreated, presentJson } from '../server/present.ts'
import { NO_QUERY } from '../server/query.ts'

export interface ParcelsRouteOptions {
  readonly manageParcels: ParcelCommands
  readonly authorize: Authorize
}

/** Operators' commands on parcels, under /relay (scope `admin`). */
export function parcelsRoutes({ manageParcels, authorize }: ParcelsRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  const admin = { scope: 'admin', query: NO_QUERY } as const
  routes.add('put', '/relay/parcels/:identifier/watch', {
    ...admin,
    answer: async (ctx, { param }) => {
      const watched = await manageParcels.watch(param('identifier'))
      if (watched.created) presentCreated(ctx, `/relay/parcels/${watched.identifier}`, watched)
      else presentJson(ctx, 200, watched)
    },
  })
  routes.add('delete', '/relay/parcels/:identifier/watch', {
    ...admin,
    answer: async (ctx, { param }) => presentJson(ctx, 200, await manageParcels.unwatch(param('identifier'))),
  })
  routes.add('post', '/relay/parcels/:identifier/refresh', {
    ...admin,
    answer: async (ctx, { param }) => presentJson(ctx, 200, await manageParcels.refresh(param('identifier'))),
  })
  return routes.router
}

import type Router from '@koa/router'
import type { Replica } from '../../domain/admin/replica.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentInstant, presentJson } from '../server/present.ts'
import { NO_QUERY } from '../server/query.ts'

export interface ReplicasRouteOptions {
  readonly listReplicas: () => Promise<readonly Replica[]>
  readonly authorize: Authorize
}

/** GET /relay/replicas (scope `admin`): the relays that share the store, and what each of them does. */
export function replicasRoutes({ listReplicas, authorize }: ReplicasRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  routes.add('get', '/relay/replicas', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx) => presentJson(ctx, 200, { replicas: (await listReplicas()).map(present) }),
  })
  return routes.router
}

function present({ id, name, version, configFingerprint, startedAtMs, lastSeenAtMs, roles }: Replica): object {
  const times = { startedAt: presentInstant(startedAtMs), lastSeenAt: presentInstant(lastSeenAtMs) }
  return { id: String(id), name, version, configFingerprint, ...times, roles }
}

import type Router from '@koa/router'
import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import { presentSettings } from '../../domain/delivery/endpoint-settings.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { KeyedEndpoint, ManageEndpoints } from '../../flow/delivery/manage-endpoints.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentAnswerStart, presentCreated, presentInstant, presentJson } from '../server/present.ts'
import { count, NO_QUERY, page, query } from '../server/query.ts'

const BODY_BYTES_MAX = 256 * 1024

export interface EndpointsRouteOptions {
  readonly manageEndpoints: ManageEndpoints
  readonly authorize: Authorize
}

/** Endpoints, under /relay (scope `admin`). A key is shown once, in the answer to the request that made it. */
export function endpointsRoutes({ manageEndpoints, authorize }: EndpointsRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  const admin = { scope: 'admin', query: NO_QUERY } as const
  routes.add('get', '/relay/endpoints', {
    scope: 'admin',
    query: query({ ...page, cursor: count.default(0) }),
    answer: async (ctx, call) => {
      const { endpoints, next } = await manageEndpoints.list(call.query)
      presentJson(ctx, 200, { endpoints: endpoints.map(presentEndpoint), next })
    },
  })
  routes.add('post', '/relay/endpoints', {
    ...admin,
    bodyBytesMax: BODY_BYTES_MAX,
    answer: async (ctx, { body }) => {
      const added = await manageEndpoints.add(body)
      presentCreated(ctx, `/relay/endpoints/${added.state.endpoint.id}`, presentKeyed(added))
    },
  })
  routes.add('get', '/relay/endpoints/:id', {
    ...admin,
    answer: async (ctx, { param }) => presentJson(ctx, 200, presentEndpoint(await manageEndpoints.find(param('id')))),
  })
  routes.add('patch', '/relay/endpoints/:id', {
    ...admin,
    bodyBytesMax: BODY_BYTES_MAX,
    answer: async (ctx, { param, body }) => presentJson(ctx, 200, presentKeyed(await manageEndpoints.change(param('id'), body))),
  })
  routes.add('delete', '/relay/endpoints/:id', {
    ...admin,
    answer: async (ctx, { param }) => {
      await manageEndpoints.remove(param('id'))
      ctx.body = null
      ctx.status = 204
    },
  })
  routes.add('post', '/relay/endpoints/:id/rotate', {
    ...admin,
    bodyBytesMax: BODY_BYTES_MAX,
    answer: async (ctx, { param, body }) => presentJson(ctx, 200, presentKeyed(await manageEndpoints.rotate(param('id'), body))),
  })
  routes.add('post', '/relay/endpoints/:id/retry', {
    ...admin,
    answer: async (ctx, { param }) => presentJson(ctx, 202, presentEndpoint(await manageEndpoints.retry(param('id')))),
  })
  routes.add('post', '/relay/endpoints/:id/test', {
    ...admin,
    answer: async (ctx, { param }) => presentJson(ctx, 200, presentTest(await manageEndpoints.test(param('id')))),
  })
  return routes.router
}

function presentKeyed({ state, sharedKey }: KeyedEndpoint): object {
  return sharedKey === null ? presentEndpoint(state) : { ...presentEndpoint(state), sharedKey }
}

function presentEndpoint({ endpoint, origin, disabled, health, keys, queuedTo }: EndpointState): object {
  return {
    ...presentSettings(endpoint),
    origin,
    state: disabled !== null ? 'disabled' : health.probing !== null ? 'failing' : 'active',
    disabledBecause: disabled,
    lastSuccessAt: presentInstant(health.lastSuccessAtMs),
    failingSince: presentInstant(health.failingSinceMs),
    nextProbeAt: presentInstant(disabled === null ? (health.probing?.atMs ?? null) : null),
    nextKeyFrom: presentInstant(keys?.next?.fromMs ?? null),
    previousKeyUntil: presentInstant(keys?.previous?.untilMs ?? null),
    queuedTo,
  }
}

function presentTest(result: AttemptResult): object {
  return {
    result: result.kind,
    status: result.kind === 'failed' ? null : result.status,
    reason: result.kind === 'failed' ? result.reason : null,
    durationMs: Math.round(result.durationMs),
    ...presentAnswerStart(result.answerStart),
  }
}

import Router from '@koa/router'
import type { Context } from 'koa'
import type { AttemptResult } from '../domain/delivery.ts'
import { presentSettings } from '../domain/endpoint-settings.ts'
import type { KeyedEndpoint, ManageEndpoints } from '../flow/manage-endpoints.ts'
import type { EndpointState } from '../flow/ports.ts'
import type { Authorize } from './authorize.ts'
import { readJson } from './json-body.ts'
import { presentInstant, presentJson, type WithParams } from './present.ts'

const BODY_BYTES_MAX = 256 * 1024

export interface EndpointsRouteOptions {
  readonly manageEndpoints: ManageEndpoints
  readonly authorize: Authorize
}

/** Endpoints, under /relay (scope `admin`). No answer holds a key but the one that follows its making. */
export function endpointsRoutes({ manageEndpoints, authorize }: EndpointsRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  // Who asks is settled before a body is read.
  router.use(async (ctx, next) => {
    await authorize(ctx, 'admin')
    await next()
  })
  const json = readJson(BODY_BYTES_MAX)
  const idOf = (ctx: WithParams) => ctx.params.id ?? ''

  router.get('/relay/endpoints', async (ctx) => presentJson(ctx, 200, { endpoints: (await manageEndpoints.list()).map(presentEndpoint) }))
  router.post('/relay/endpoints', json, async (ctx) => presentJson(ctx, 201, presentKeyed(await manageEndpoints.add(bodyOf(ctx)))))
  router.get('/relay/endpoints/:id', async (ctx: WithParams) =>
    presentJson(ctx, 200, presentEndpoint(await manageEndpoints.find(idOf(ctx)))),
  )
  router.patch('/relay/endpoints/:id', json, async (ctx: WithParams) =>
    presentJson(ctx, 200, presentKeyed(await manageEndpoints.change(idOf(ctx), bodyOf(ctx)))),
  )
  router.delete('/relay/endpoints/:id', async (ctx: WithParams) => {
    await manageEndpoints.remove(idOf(ctx))
    ctx.body = null
    ctx.status = 204
  })
  router.post('/relay/endpoints/:id/test', async (ctx: WithParams) =>
    presentJson(ctx, 200, presentTest(await manageEndpoints.test(idOf(ctx)))),
  )
  return router
}

function bodyOf(ctx: Context): unknown {
  return ctx.request.body
}

function presentKeyed({ state, sharedKey }: KeyedEndpoint): object {
  return sharedKey === null ? presentEndpoint(state) : { ...presentEndpoint(state), sharedKey }
}

function presentEndpoint({ endpoint, origin, disabled, health, keys, queuedTo }: EndpointState): object {
  return {
    ...presentSettings(endpoint),
    origin,
    disabledBecause: disabled,
    lastSuccessAt: presentInstant(health.lastSuccessAtMs),
    failingSince: presentInstant(health.failingSinceMs),
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
    answerStart: Buffer.from(result.answerStart).toString('base64'),
  }
}

import Router from '@koa/router'
import type { Context } from 'koa'
import type { ManageDeliveries, ShownDelivery } from '../flow/manage-deliveries.ts'
import type { MadeAttempt } from '../flow/ports.ts'
import type { Authorize } from './authorize.ts'
import { readJson } from './json-body.ts'
import { presentInstant, presentJson, type WithParams } from './present.ts'

const BODY_BYTES_MAX = 16 * 1024

export interface DeliveriesRouteOptions {
  readonly manageDeliveries: ManageDeliveries
  readonly authorize: Authorize
}

/** Deliveries, and sending them again, under /relay (scope `admin`). */
export function deliveriesRoutes({ manageDeliveries, authorize }: DeliveriesRouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true })
  router.use(async (ctx, next) => {
    await authorize(ctx, 'admin')
    await next()
  })
  const idOf = (ctx: WithParams) => ctx.params.id ?? ''
  router.get('/relay/deliveries', async (ctx) => {
    const query = { endpoint: single(ctx, 'endpoint'), state: single(ctx, 'state'), cursor: single(ctx, 'cursor') }
    const { deliveries, next } = await manageDeliveries.list(query)
    presentJson(ctx, 200, { deliveries: deliveries.map(presentDelivery), next })
  })
  router.get('/relay/deliveries/:id', async (ctx: WithParams) => {
    const { delivery, attempts } = await manageDeliveries.find(idOf(ctx))
    presentJson(ctx, 200, { ...presentDelivery(delivery), attempts: attempts.map(presentAttempt) })
  })
  router.post('/relay/deliveries/:id/replay', readJson(BODY_BYTES_MAX), async (ctx: WithParams) => {
    await manageDeliveries.replay(idOf(ctx), ctx.request.body)
    presentJson(ctx, 202, { count: 1 })
  })
  router.post('/relay/endpoints/:id/replay', readJson(BODY_BYTES_MAX), async (ctx: WithParams) => {
    const replayed = await manageDeliveries.replayMany(idOf(ctx), ctx.request.body)
    presentJson(ctx, replayed.dryRun ? 200 : 202, replayed)
  })
  return router
}

/** The last of several values of the same name. */
function single(ctx: Context, name: string): string | undefined {
  const value = ctx.query[name]
  return Array.isArray(value) ? value.at(-1) : value
}

function presentDelivery(delivery: ShownDelivery): object {
  const { deliveryId, endpointId, endpointName, webhookId, sequence, previousSequence, state, reason } = delivery
  return {
    id: String(deliveryId),
    endpoint: { id: endpointId, name: endpointName },
    webhookId,
    sequence,
    previousSequence,
    state,
    reason,
    attemptCount: delivery.attempts,
    queuedAt: presentInstant(delivery.queuedAtMs),
    nextAttemptAt: presentInstant(delivery.nextAttemptAtMs),
    settledAt: presentInstant(delivery.settledAtMs),
  }
}

/** What a receiver answers is anybody's bytes: Base64 carries them as they are. */
function presentAttempt({ atMs, durationMs, status, reason, answerStart }: MadeAttempt): object {
  return { at: presentInstant(atMs), durationMs, status, reason, answerStart: Buffer.from(answerStart).toString('base64') }
}

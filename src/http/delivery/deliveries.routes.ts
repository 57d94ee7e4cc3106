import type Router from '@koa/router'
import type { AttemptRecord } from '../../domain/delivery/delivery-list.ts'
import { DELIVERY_STATES, type ManageDeliveries, type ShownDelivery } from '../../flow/delivery/manage-deliveries.ts'
import { pathOfJob, presentJob } from '../admin/jobs.routes.ts'
import { createApiRoutes } from '../server/api-routes.ts'
import type { Authorize } from '../server/authorize.ts'
import { presentAnswerStart, presentInstant, presentJson } from '../server/present.ts'
import { count, NO_QUERY, oneOf, page, query, text } from '../server/query.ts'

const BODY_BYTES_MAX = 16 * 1024
const id = count.nullable().default(null)

export interface DeliveriesRouteOptions {
  readonly manageDeliveries: ManageDeliveries
  readonly authorize: Authorize
}

/** Deliveries, their retries and replays, under /relay (scope `admin`). */
export function deliveriesRoutes({ manageDeliveries, authorize }: DeliveriesRouteOptions): Router {
  const routes = createApiRoutes(authorize)
  routes.add('get', '/relay/deliveries', {
    scope: 'admin',
    query: query({ ...page, cursor: id, endpoint: id, parcel: text, state: oneOf(DELIVERY_STATES) }),
    answer: async (ctx, call) => {
      const { deliveries, next } = await manageDeliveries.list(call.query)
      presentJson(ctx, 200, { deliveries: deliveries.map(presentDelivery), next })
    },
  })
  routes.add('get', '/relay/deliveries/:id', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx, { param }) => {
      const { delivery, attempts, request } = await manageDeliveries.find(param('id'))
      const { status, detailedStatus, ...sent } = request
      presentJson(ctx, 200, { ...presentDelivery(delivery), status, detailedStatus, request: sent, attempts: attempts.map(presentAttempt) })
    },
  })
  routes.add('post', '/relay/deliveries/:id/replay', {
    scope: 'admin',
    query: NO_QUERY,
    bodyBytesMax: BODY_BYTES_MAX,
    answer: async (ctx, { param, body }) => {
      await manageDeliveries.replay(param('id'), body)
      presentJson(ctx, 202, { count: 1 })
    },
  })
  routes.add('post', '/relay/deliveries/:id/retry', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx, { param }) => presentJson(ctx, 202, presentDelivery(await manageDeliveries.retry(param('id')))),
  })
  routes.add('post', '/relay/deliveries/:id/skip', {
    scope: 'admin',
    query: NO_QUERY,
    answer: async (ctx, { param }) => presentJson(ctx, 202, presentDelivery(await manageDeliveries.skip(param('id')))),
  })
  routes.add('post', '/relay/endpoints/:id/replay', {
    scope: 'admin',
    query: NO_QUERY,
    bodyBytesMax: BODY_BYTES_MAX,
    answer: async (ctx, { app, param, body }) => {
      const leaving = new AbortController()
      ctx.res.once('close', () => leaving.abort())
      const answer = await manageDeliveries.replayMany(param('id'), body, { name: app.username, left: leaving.signal })
      if (answer.kind === 'job') {
        ctx.set('Location', pathOfJob(answer.job))
        presentJson(ctx, 202, presentJob(answer.job))
      } else if (answer.kind === 'counted') presentJson(ctx, 200, { count: answer.count, more: answer.more, dryRun: true })
      else presentJson(ctx, 202, { count: answer.count, dryRun: false })
    },
  })
  return routes.router
}

function presentDelivery(delivery: ShownDelivery): object {
  const { deliveryId, endpointId, endpointName, webhookId, sequence, previousSequence, state, reason } = delivery
  return {
    id: String(deliveryId),
    endpoint: { id: endpointId, name: endpointName },
    parcel: { identifiers: delivery.identifiers },
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

function presentAttempt({ atMs, durationMs, status, reason, answerStart }: AttemptRecord): object {
  return { at: presentInstant(atMs), durationMs, status, reason, ...presentAnswerStart(answerStart) }
}

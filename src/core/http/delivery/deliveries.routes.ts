import type { Context } from 'koa'
import { z } from 'zod'
import { FAILURE_REASONS } from '../../domain/delivery/delivery.ts'
import { type AttemptRecord, INSTEAD_OF_MISSING, replayTargetSchema } from '../../domain/delivery/delivery-list.ts'
import { AppError } from '../../domain/errors.ts'
import { DELIVERY_STATES, readDeliveryCursor, type ShownDelivery } from '../../flow/delivery/manage-deliveries.ts'
import {
  type AnswerOf,
  identifier,
  idOf,
  instant as instantOf,
  named,
  numberedId,
  presentAnswerStart,
  presentInstant,
  wholeNumber,
} from '../server/answer-schemas.ts'
import { count, instant, oneOf, page, query, read, text, type WithAuthorize } from '../server/route.ts'
import { callRoute, jsonBody, listRoute } from '../server/route-shapes.ts'

export const failureReason = named('FailureReason', (): z.ZodType<string> => z.enum(FAILURE_REASONS))

const webhookId = () => z.string().regex(/^[A-Za-z0-9_-]{1,128}$/)

/** The start of a receiver's answer. */
export const answerStart = () => ({
  answerStart: z
    .string()
    .nullable()
    .describe('The start of the answer. Of a redirect, the first line is `Location: ` and its target. Null: it is not text.'),
  answerStartBase64: z.base64().optional(),
})

const attemptSchema = named('DeliveryAttempt', () =>
  z.strictObject({
    at: instantOf(),
    durationMs: z.number().min(0),
    status: wholeNumber().nullable().describe('Null: there was no answer; see `reason`.'),
    reason: failureReason().nullable(),
    address: z
      .string()
      .nullable()
      .describe("The IP address that took or refused the connection; the proxy's, if there is one. Null: there was no connection."),
    ...answerStart(),
  }),
)

const deliveryMembers = () => ({
  id: numberedId(),
  endpoint: z.strictObject({ id: numberedId(), name: z.string() }),
  parcel: z.strictObject({ identifiers: z.array(identifier()) }),
  webhookId: webhookId().describe('The id of the event, the same for every attempt and replay.'),
  sequence: wholeNumber(),
  previousSequence: wholeNumber(),
  status: z
    .string()
    .nullable()
    .describe(
      'The status in the event; of an event of watchdogs its name, such as `parcel.stalled`. Null: its bytes are no longer kept or, in a list, are over 16 KiB.',
    ),
  detailedStatus: z.string().nullable().describe('Of an event of watchdogs: the rule.'),
  state: z.enum(DELIVERY_STATES),
  reason: z
    .enum(['receiver_refused', 'unreachable', 'forbidden', 'body_gone', 'skipped', 'endpoint_removed', 'held_too_long'])
    .nullable()
    .describe('Why the delivery was given up or cancelled.'),
  attemptCount: wholeNumber(),
  lastAttempt: attemptSchema().nullable(),
  queuedAt: instantOf(),
  nextAttemptAt: instantOf()
    .nullable()
    .describe(
      'When the next attempt is due or, while its endpoint is failing, the next probe. Null: it waits for an earlier delivery or for its disabled endpoint, or it has ended.',
    ),
  settledAt: instantOf().nullable(),
})

const deliverySchema = named('Delivery', () => z.strictObject(deliveryMembers()))

const inspectedDeliverySchema = named('InspectedDelivery', () =>
  z.strictObject({
    ...deliveryMembers(),
    request: z
      .strictObject({
        url: z.string().describe("The endpoint's current URL."),
        headers: z.record(z.string(), z.string()),
        body: z.string().nullable().describe('Null: it is no longer kept.'),
      })
      .describe('What an attempt sends, without the signatures.'),
    attempts: z.array(attemptSchema()).describe('The most recent first.'),
  }),
)

export type DeliveryAnswer = AnswerOf<typeof deliverySchema>
export type InspectedDeliveryAnswer = AnswerOf<typeof inspectedDeliverySchema>

const id = count.nullable().default(null)

const one = { params: { id: idOf('delivery') } } as const

/** Deliveries and their retries; one may be sent again. */
export const DELIVERIES_ROUTES = [
  listRoute('/relay/deliveries', {
    summary: 'List deliveries',
    description:
      'Newest first. `from` (inclusive) and `to` (exclusive) select by the time of queueing; then the delivery queued last comes first. A page with a `next` may hold fewer than asked for, even none.',
    query: query({
      ...page,
      cursor: read(readDeliveryCursor, 'must be the next of a page'),
      endpoint: id,
      parcel: text,
      state: oneOf(DELIVERY_STATES),
      from: instant,
      to: instant,
    }),
    items: ['deliveries', deliverySchema],
    problems: ['bad_tracking_number', 'not_found'],
    example: 'state=delivered&limit=10',
    read: ({ manageDeliveries }, asked) => manageDeliveries.list(asked),
    present: presentDelivery,
  }),
  callRoute('get', '/relay/deliveries/:id', {
    ...one,
    summary: 'Show a delivery',
    description: 'The request that is sent, and the last 50 attempts with the start of their answers.',
    answers: { 200: ['The delivery', inspectedDeliverySchema] },
    problems: ['not_found'],
    answer: async ({ manageDeliveries }, { param }) => {
      const { delivery, attempts, request } = await manageDeliveries.find(param('id'))
      return [200, { ...presentDelivery(delivery), request, attempts: attempts.map(presentAttempt) }]
    },
  }),
  callRoute('post', '/relay/deliveries/:id/retry', {
    ...one,
    summary: 'Attempt a waiting delivery now',
    answers: { 202: ['The delivery is due', deliverySchema] },
    problems: ['not_found', 'not_retryable'],
    answer: async ({ manageDeliveries }, { by, param }) => [202, presentDelivery(await manageDeliveries.retry(param('id'), by))],
  }),
  callRoute('post', '/relay/deliveries/:id/skip', {
    ...one,
    summary: 'Give up a waiting delivery',
    description:
      'The delivery becomes `dead` with the reason `skipped`, and the next one of its parcel is sent. A delivery under way keeps its `state`, with the reason, until its attempt ends.',
    answers: { 202: ['The delivery is given up', deliverySchema] },
    problems: ['not_found', 'not_skippable'],
    answer: async ({ manageDeliveries }, { by, param }) => [202, presentDelivery(await manageDeliveries.skip(param('id'), by))],
  }),
  callRoute('post', '/relay/deliveries/:id/replay', {
    ...one,
    summary: 'Send a finished delivery again',
    description: 'The event keeps its `webhook-id`, and its place in the order of the parcel. `to` sends it to another endpoint.',
    body: { optional: true, ...jsonBody(() => replayTargetSchema, { to: '1' }) },
    answers: { 202: ['The delivery is queued', () => z.strictObject({ count: z.literal(1) })] },
    problems: ['not_found', 'not_replayable'],
    answer: async ({ manageDeliveries }, { by, param, body }) => {
      await manageDeliveries.replay(param('id'), body, by)
      return [202, { count: 1 }]
    },
  }),
]

/** Answers the address of a list that earlier versions had. */
export function refuseMissing({ authorize }: WithAuthorize) {
  return async (ctx: Context): Promise<void> => {
    await authorize(ctx, 'admin')
    throw new AppError('bad_request', INSTEAD_OF_MISSING)
  }
}

function presentDelivery(delivery: ShownDelivery): DeliveryAnswer {
  const { deliveryId, endpointId, endpointName, webhookId, sequence, previousSequence, state, reason, event, lastAttempt } = delivery
  return {
    id: String(deliveryId),
    endpoint: { id: endpointId, name: endpointName },
    parcel: { identifiers: delivery.identifiers },
    webhookId,
    sequence,
    previousSequence,
    status: event?.status ?? null,
    detailedStatus: event?.detailedStatus ?? null,
    state,
    reason,
    attemptCount: delivery.attempts,
    lastAttempt: lastAttempt === null ? null : presentAttempt(lastAttempt),
    queuedAt: presentInstant(delivery.queuedAtMs),
    nextAttemptAt: presentInstant(delivery.nextAttemptAtMs),
    settledAt: presentInstant(delivery.settledAtMs),
  }
}

function presentAttempt({
  atMs,
  durationMs,
  status,
  reason,
  address,
  answerStart,
}: AttemptRecord): InspectedDeliveryAnswer['attempts'][number] {
  return { at: presentInstant(atMs), durationMs, status, reason, address, ...presentAnswerStart(answerStart) }
}

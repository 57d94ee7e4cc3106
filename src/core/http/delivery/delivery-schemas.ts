import { z } from 'zod'
import { FAILURE_REASONS } from '../../domain/delivery/delivery.ts'
import { DELIVERY_STATES } from '../../flow/delivery/manage-deliveries.ts'
import { type AnswerOf, identifier, instant, named, numberedId, wholeNumber } from '../server/answer-schemas.ts'

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
    at: instant(),
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
  status: z.string().nullable().describe('The status in the event. Null: its bytes are no longer kept or, in a list, are over 16 KiB.'),
  detailedStatus: z.string().nullable(),
  state: z.enum(DELIVERY_STATES),
  reason: z
    .enum(['receiver_refused', 'unreachable', 'forbidden', 'body_gone', 'skipped', 'endpoint_removed', 'held_too_long'])
    .nullable()
    .describe('Why the delivery was given up or cancelled.'),
  attemptCount: wholeNumber(),
  lastAttempt: attemptSchema().nullable(),
  queuedAt: instant(),
  nextAttemptAt: instant()
    .nullable()
    .describe(
      'When the next attempt is due or, while its endpoint is failing, the next probe. Null: it waits for an earlier delivery or for its disabled endpoint, or it has ended.',
    ),
  settledAt: instant().nullable(),
})

export const deliverySchema = named('Delivery', () => z.strictObject(deliveryMembers()))

export const inspectedDeliverySchema = named('InspectedDelivery', () =>
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

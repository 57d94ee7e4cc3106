import { z } from 'zod'
import type { FailureReason } from '../../domain/delivery/delivery.ts'
import type { ListedDelivery } from '../../domain/delivery/delivery-list.ts'
import { DELIVERY_STATES } from '../../flow/delivery/manage-deliveries.ts'
import { identifier, instant, named, numberedId, oneOfAll, wholeNumber } from '../server/answer-schemas.ts'

export const failureReason = named('FailureReason', () =>
  oneOfAll<FailureReason>({
    timeout: true,
    dns: true,
    refused: true,
    reset: true,
    tls: true,
    proxy: true,
    bad_response: true,
    forbidden: true,
    interrupted: true,
    withdrawn: true,
    network: true,
    body_gone: true,
  }),
)

const webhookId = () => z.string().regex(/^[A-Za-z0-9_-]{1,128}$/)

const deliveryMembers = () => ({
  id: numberedId(),
  endpoint: z.strictObject({ id: numberedId(), name: z.string() }),
  parcel: z.strictObject({ identifiers: z.array(identifier()) }),
  webhookId: webhookId().describe('The id of the event, the same for every attempt and replay.'),
  sequence: wholeNumber(),
  previousSequence: wholeNumber(),
  state: z.enum(DELIVERY_STATES),
  reason: oneOfAll<NonNullable<ListedDelivery['reason']>>({
    receiver_refused: true,
    unreachable: true,
    forbidden: true,
    body_gone: true,
    skipped: true,
    endpoint_removed: true,
  })
    .nullable()
    .describe('Why it was given up or cancelled.'),
  attemptCount: wholeNumber(),
  queuedAt: instant(),
  nextAttemptAt: instant().nullable().describe('Null: it waits for an earlier one or for its failing endpoint, or it has ended.'),
  settledAt: instant().nullable(),
})

export const deliverySchema = named('Delivery', () => z.strictObject(deliveryMembers()))

/** The start of what a receiver answered. */
export const answerStart = () => ({
  answerStart: z.string().nullable().describe('The start of its answer; null: it is no text.'),
  answerStartBase64: z.base64().optional(),
})

export const inspectedDeliverySchema = named('InspectedDelivery', () =>
  z.strictObject({
    ...deliveryMembers(),
    status: z.string().nullable(),
    detailedStatus: z.string().nullable(),
    request: z
      .strictObject({
        url: z.string().describe("The endpoint's current URL."),
        headers: z.record(z.string(), z.string()),
        body: z.string().nullable().describe('Null: it is no longer kept.'),
      })
      .describe('What an attempt sends, without the signatures.'),
    attempts: z
      .array(
        z.strictObject({
          at: instant(),
          durationMs: z.number().min(0),
          status: wholeNumber().nullable().describe('Null: there was no answer, for the `reason`.'),
          reason: failureReason().nullable(),
          ...answerStart(),
        }),
      )
      .describe('The last first.'),
  }),
)

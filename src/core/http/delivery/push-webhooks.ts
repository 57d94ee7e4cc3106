import { z } from 'zod'
import { operatorEventSchema } from '../../../console/events/operator-event-schemas.ts'
import { EXAMPLE_EVENT, eventSchema } from '../ingest/webhook.routes.ts'

/** A request that the relay posts, described for the API document. */
export interface PushedEvent {
  readonly summary: string
  readonly description: string
  readonly headers: z.ZodObject
  readonly body: z.ZodType
  readonly example: unknown
}

const signature = () =>
  z.string().describe("The HMAC-SHA256 of the exact body, in Base64, with the endpoint's `sharedKey` as its UTF-8 bytes.")

const pushHeaders = () => ({
  'x-service-hmac-sha256': signature(),
  'x-service-hmac-sha256-next': signature().optional().describe('The same with the new key, while a key is being replaced.'),
  'webhook-id': z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,128}$/)
    .describe('The id of the event, the same for every attempt and replay.'),
  'relay-sequence': z.string().regex(/^\d+$/).describe('The position of the event in the feed.'),
  'relay-previous-sequence': z
    .string()
    .regex(/^\d+$/)
    .describe('The sequence of the previous event of the same parcel that was queued for you; 0: there was none.'),
})

export const endpointPush = (): PushedEvent => ({
  summary: 'An event of a parcel, to each endpoint whose filters it passes',
  description:
    "The carrier's own push, byte for byte; if only a poll brought the event, a body in the same shape. It is sent at least once, and in order for each parcel: the next event of a parcel is not sent until the one before it was accepted or given up.",
  headers: z.object({
    ...pushHeaders(),
    'webhook-timestamp': z.string().optional().describe('With `signature: standard-webhooks`, as Standard Webhooks defines it.'),
    'webhook-signature': z.string().optional().describe('With `signature: standard-webhooks`, as Standard Webhooks defines it.'),
    'relay-test': z.literal('true').optional().describe('A test push of an operator: check the signature and do nothing else.'),
  }),
  body: eventSchema(),
  example: EXAMPLE_EVENT,
})

export const operatorPush = (): PushedEvent => ({
  summary: 'Something that operators should know, to the address in the setting `operator`',
  description: 'Signed and retried like any delivery.',
  headers: z.object(pushHeaders()),
  body: operatorEventSchema(),
  example: {
    event: 'endpoint_failing',
    endpoint: { id: '1', name: 'shop' },
    since: '2026-03-01T09:45:00.000Z',
    failure: { status: 401, reason: null, answer: 'signature does not match' },
    at: '2026-03-01T10:00:00.250Z',
  },
})

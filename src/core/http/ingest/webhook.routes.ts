import { z } from 'zod'
import { named } from '../server/answer-schemas.ts'
import { OPEN, ownRoute } from '../server/route.ts'
import { receivePushes } from './webhook.ts'

const texts = () => z.array(z.looseObject({ value: z.string(), languageCode: z.string() }))

/** An event, as the carrier pushes it and as endpoints receive it. It is a loose object, because the carrier may add members. */
export const eventSchema = named('Event', () =>
  z.looseObject({
    status: z.string(),
    detailedStatus: z.string(),
    eventTime: z.string(),
    location: z.string().nullable().optional(),
    trackingIds: z.array(z.string()),
    distributionType: z.string().optional(),
    displayToConsumer: z.boolean().optional(),
    consumerDescription: texts().optional(),
    detailedStatusDescription: texts().optional(),
  }),
)

export const EXAMPLE_EVENT = {
  status: 'TerminalArrived',
  detailedStatus: 'ArrivedT2',
  eventTime: '2026-03-01T10:00:00.250Z',
  location: 'Lund',
  trackingIds: ['370000000000000001'],
  distributionType: 'Mailbox',
  displayToConsumer: true,
  consumerDescription: [{ value: 'Your parcel is at the terminal', languageCode: 'en' }],
  detailedStatusDescription: [{ value: 'Arrived at the terminal', languageCode: 'en' }],
}

/** The address to which the carrier pushes. The public listener serves it before any router, and no schema checks a push. */
export const WEBHOOK_ROUTES = [
  ownRoute({
    ...OPEN,
    method: 'post',
    path: '/webhooks/status',
    listener: 'public',
    summary: 'Take a push of the carrier',
    description:
      'The path is the setting `webhook.path`. Exactly one `x-service-hmac-sha256` header: the HMAC-SHA256 of the exact body, in Base64, with one of `webhook.sharedKeys`. After any answer but 200, send it again; a duplicate does no harm.',
    body: { bytesMax: null, content: { 'application/json': { schema: eventSchema, example: EXAMPLE_EVENT } } },
    answers: () => ({ 200: { description: 'The push is on disk: recorded, a duplicate, expired or quarantined' } }),
    problems: ['signature_invalid', 'body_too_large', 'too_many_requests', 'overloaded', 'storage_unavailable'],
    handle: receivePushes,
  }),
]

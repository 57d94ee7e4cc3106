import type { PollObservation, PushObservation } from '../../../src/core/domain/history/observation.ts'
import { parseAllAnswer } from '../../../src/core/domain/history/pull-response.ts'
import { parseWebhookEvent } from '../../../src/core/domain/ingest/parse-push.ts'
import { readJson } from '../../../src/core/domain/json-body.ts'

export interface PushFields {
  readonly status?: string
  readonly detailedStatus?: string
  readonly eventTime?: string
  readonly location?: string | null
  readonly trackingIds?: readonly unknown[]
  readonly distributionType?: string
  readonly displayToConsumer?: boolean
  readonly texts?: Readonly<Record<string, string>>
  readonly consumer?: Readonly<Record<string, string>>
}

const localized = (texts: Readonly<Record<string, string>>) =>
  Object.entries(texts).map(([languageCode, value]) => ({ value, languageCode }))

/** Returns the body of a push as the carrier would send it. */
export function pushBody(fields: PushFields = {}): Buffer {
  const { texts = { en: 'Arrived', sv: 'Framme' }, consumer = texts, ...rest } = fields
  return Buffer.from(
    JSON.stringify({
      status: 'TerminalArrived',
      detailedStatus: 'ArrivedT2',
      eventTime: '2026-03-01T10:00:00.250Z',
      location: 'Stockholm',
      trackingIds: ['1001'],
      distributionType: 'Mailbox',
      displayToConsumer: true,
      consumerDescription: localized(consumer),
      detailedStatusDescription: localized(texts),
      ...rest,
    }),
  )
}

export function aPush(fields: PushFields = {}): PushObservation {
  const reading = parseWebhookEvent(pushBody(fields), null)
  if (!reading.ok) throw new Error(`not an event: ${reading.reason}`)
  return reading.observation
}

export interface PolledEntry {
  readonly status?: string
  readonly detailedStatus?: string
  readonly eventTimestamp?: string
  readonly location?: string
  readonly detailedStatusDescription?: string
  readonly consumerDescription?: string | null
  readonly displayToConsumer?: boolean
  readonly [unknown: string]: unknown
}

export interface PollFields {
  readonly asked?: string
  readonly language?: string
  readonly askedAtMs?: number
  readonly trackingIds?: readonly string[]
  readonly distributionType?: string
  /** The text of the only entry if `statuses` is missing. */
  readonly text?: string
  readonly statuses?: readonly PolledEntry[]
  readonly extra?: Readonly<Record<string, unknown>>
}

/** Returns the carrier's answer to `all`, with the whole history. */
export function answerBody(fields: PollFields = {}): Buffer {
  const { text = 'Arrived', statuses = [{ detailedStatusDescription: text, consumerDescription: text }] } = fields
  return Buffer.from(
    JSON.stringify({
      statuses: statuses.map((entry) => ({
        status: 'TerminalArrived',
        detailedStatus: 'ArrivedT2',
        eventTimestamp: '2026-03-01T10:00:00Z',
        location: 'Stockholm',
        detailedStatusDescription: 'Arrived',
        consumerDescription: 'Arrived',
        displayToConsumer: true,
        ...entry,
      })),
      trackingIds: fields.trackingIds ?? ['1001'],
      distributionType: fields.distributionType ?? 'Mailbox',
      ...fields.extra,
    }),
  )
}

export function aPoll(fields: PollFields = {}): PollObservation {
  const reading = parseAllAnswer(answerBody(fields), {
    asked: fields.asked ?? 'AB123456789SE',
    language: fields.language ?? 'en',
    contentLanguage: null,
    askedAtMs: fields.askedAtMs ?? Date.UTC(2026, 2, 1, 11),
  })
  if (!reading.ok) throw new Error(`not an answer: ${reading.reason}`)
  return reading.observation
}

export function readBack(body: string): unknown {
  const reading = readJson(Buffer.from(body))
  if (!reading.ok) throw new Error(`not JSON: ${reading.reason}`)
  return reading.value
}

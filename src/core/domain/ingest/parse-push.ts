import { encodeContent } from '../history/content.ts'
import type { Sighting, Texts } from '../history/observation.ts'
import { parseIdentifier, TRACKING_IDS_MAX } from '../identifiers.ts'
import { parseInstant } from '../instant.ts'
import { isObject, member, readJson } from '../json-body.ts'
import { parseLanguageTag } from '../languages.ts'
import { derivedText } from '../text.ts'
import type { IncomingPush, ParsedEvent, ReceivedPush } from './inbox.ts'

/**
 * Parses the body of a verified push as one event (spec, "Webhook event payload"; DOMAIN 5.3). An event must have a non-empty `status` and
 * `detailedStatus`, a valid `eventTime`, and 1 to 100 valid `trackingIds`. Other members may be missing, and are ignored if their type is
 * wrong.
 */
export function parseWebhookEvent(body: Uint8Array, contentEncoding: string | null): ParsedEvent {
  if (isEncoded(contentEncoding)) return { ok: false, reason: 'content_encoding' }
  const reading = readJson(body)
  if (!reading.ok) return reading
  const event = reading.value
  if (!isObject(event)) return { ok: false, reason: 'schema' }

  const status = member(event, 'status')
  const detailedStatus = member(event, 'detailedStatus')
  if (typeof status !== 'string' || status === '' || typeof detailedStatus !== 'string' || detailedStatus === '') {
    return { ok: false, reason: 'schema' }
  }
  const instant = parseInstant(member(event, 'eventTime'))
  if (instant === null) return { ok: false, reason: 'event_time' }
  const trackingIds = parseTrackingIds(member(event, 'trackingIds'))
  if (trackingIds === null) return { ok: false, reason: 'tracking_id' }

  const location = member(event, 'location')
  const displayToConsumer = member(event, 'displayToConsumer')
  const distributionType = member(event, 'distributionType')
  const { texts, dropped } = parseTexts(member(event, 'consumerDescription'), member(event, 'detailedStatusDescription'))
  const sighting = {
    source: 'push',
    status: derivedText(status),
    detailedStatus: derivedText(detailedStatus),
    instant,
    location: typeof location === 'string' ? derivedText(location) : '',
    displayToConsumer: typeof displayToConsumer === 'boolean' ? displayToConsumer : null,
    distributionType: typeof distributionType === 'string' ? derivedText(distributionType) : null,
    texts,
    extra: [],
  } as const satisfies Sighting
  return { ok: true, observation: { kind: 'push', trackingIds, sighting, content: encodeContent(sighting), textsDropped: dropped } }
}

function isEncoded(contentEncoding: string | null): boolean {
  return contentEncoding !== null && contentEncoding.trim().toLowerCase() !== 'identity'
}

/** Null: there are no ids, too many, or an invalid one. An invalid id is not skipped, because it may be the only known id of the parcel. */
function parseTrackingIds(value: unknown): readonly string[] | null {
  if (!Array.isArray(value) || value.length === 0 || value.length > TRACKING_IDS_MAX) return null
  const ids = new Set<string>()
  for (const item of value) {
    const id = parseIdentifier(item)
    if (id === null) return null
    ids.add(id)
  }
  return [...ids]
}

function parseTexts(consumer: unknown, detailed: unknown): { readonly texts: Readonly<Record<string, Texts>>; readonly dropped: number } {
  // A plain object is safe here, because none of the properties that objects inherit is named like a lower-case language tag.
  const texts: Record<string, Texts> = {}
  const inConsumer = readTexts(consumer)
  const inDetailed = readTexts(detailed)
  for (const [language, text] of inConsumer.byLanguage) texts[language] = { consumer: text }
  for (const [language, text] of inDetailed.byLanguage) texts[language] = { ...texts[language], detailed: text }
  return { texts, dropped: inConsumer.dropped + inDetailed.dropped }
}

interface ReadTexts {
  /** The last text of each language tag. */
  readonly byLanguage: ReadonlyMap<string, string>
  readonly dropped: number
}

function readTexts(list: unknown): ReadTexts {
  const byLanguage = new Map<string, string>()
  if (!Array.isArray(list)) return { byLanguage, dropped: list === undefined || list === null ? 0 : 1 }
  let dropped = 0
  for (const item of list) {
    const language = isObject(item) ? parseLanguageTag(member(item, 'languageCode')) : null
    const value = isObject(item) ? member(item, 'value') : null
    const text = typeof value === 'string' ? derivedText(value) : null
    if (language === null || text === null) {
      dropped++
      continue
    }
    const replaced = byLanguage.get(language)
    if (replaced !== undefined && replaced !== text) dropped++
    byLanguage.set(language, text)
  }
  return { byLanguage, dropped }
}

export type ParseEvent = typeof parseWebhookEvent

/** Parses a received push. This runs on the thread that received the push, so that the thread that records has less to do. */
export function parsePush(received: ReceivedPush, parseEvent: ParseEvent = parseWebhookEvent): IncomingPush {
  const { body, contentEncoding, receivedAtMs, keyIndex } = received
  return { kind: 'push', body, contentEncoding, receivedAtMs, keyIndex, reading: read(received, parseEvent) }
}

/** Parses a body. If our own code throws, the push goes into quarantine, because it would fail again if the carrier sent it again. */
function read({ body, contentEncoding }: ReceivedPush, parseEvent: ParseEvent): ParsedEvent {
  try {
    return parseEvent(body, contentEncoding)
  } catch {
    return { ok: false, reason: 'failed' }
  }
}

/** The beginning of the body of a push that a relay sends to itself as a test. No event of a carrier begins like this. */
const START = '{"parcelRelayCheck":"'
const FORM = /^\{"parcelRelayCheck":"[0-9a-f-]{36}"\}$/

/** Returns the body of a push that tests whether the relay accepts pushes. @param id A UUID, so that no two bodies are equal. */
export function checkPushBody(id: string): string {
  return `${START}${id}"}`
}

const BODY_BYTES = checkPushBody('0'.repeat(36)).length

/** Whether a push with a valid signature is a test by a relay. Tests are answered and counted, but not stored. */
export function isCheckPush(body: Uint8Array): boolean {
  return body.length === BODY_BYTES && FORM.test(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1'))
}

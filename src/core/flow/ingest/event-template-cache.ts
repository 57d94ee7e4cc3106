import type { Content } from '../../domain/history/content.ts'
import { parseIdentifier } from '../../domain/identifiers.ts'
import type { ParseEvent } from '../../domain/ingest/parse-push.ts'
import { parseWebhookEvent } from '../../domain/ingest/parse-push.ts'
import { type Instant, parseInstant } from '../../domain/instant.ts'
import type { Memory } from '../ports.ts'

/** What all events of one template have in common: everything but time and parcel. */
export interface EventTemplate {
  /** `encodeContent(said)` */
  readonly content: string
  readonly said: Content
  readonly textsDropped: number
}

/** Instead of a template: its text was seen once (only repeated texts are worth analysing), or it was analysed and cannot be used. */
export type CachedTemplate = EventTemplate | 'met' | 'unfit'

const TIME = /"eventTime"\s*:\s*"([\d:.TZ-]{17,30})"/
const TRACKING_ID = /"trackingIds"\s*:\s*\[\s*"([0-9A-Za-z]{4,40})"\s*\]/
/** One character per byte: what is searched for is ASCII, and equal bytes mean the same. */
const AS_BYTES = 'latin1'
/** Characters that JSON text cannot contain, in place of what was cut out. */
const TIME_MARK = '\u0001'
const TRACKING_ID_MARK = '\u0002'
/**
 * Values to check that an event's time and id are read from these places; two of each, because the text may contain one of them elsewhere.
 */
const OTHERS = [
  { time: '2001-02-03T04:05:06Z', trackingId: 'OTHER1' },
  { time: '2011-12-13T14:15:16Z', trackingId: 'OTHER2' },
]
/** Longer templates are not cached. */
const TEMPLATE_CHARS_MAX = 2048

/**
 * Parses events like `parseWebhookEvent`, and caches their templates: nearly every event repeats another word for word, except for time and
 * parcel. Of such an event only the time and the tracking id are parsed.
 */
export function createEventTemplateCache(templates: Memory<CachedTemplate>): ParseEvent {
  return (body, contentEncoding) => {
    const cut = contentEncoding === null ? cutOut(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString(AS_BYTES)) : null
    if (cut === null) return parseWebhookEvent(body, contentEncoding)
    const known = templates.get(cut.template)
    if (known === undefined || typeof known === 'string') {
      if (known === undefined && cut.template.length <= TEMPLATE_CHARS_MAX) templates.set(cut.template, 'met')
      else if (known === 'met') templates.set(cut.template, templateOf(cut.template) ?? 'unfit')
      return parseWebhookEvent(body, contentEncoding)
    }
    const { content, said, textsDropped } = known
    const { instant, trackingId } = cut
    return { ok: true, observation: { kind: 'push', trackingIds: [trackingId], sighting: { ...said, instant }, content, textsDropped } }
  }
}

interface Cut {
  /** The text with marks in place of the time and the tracking id. */
  readonly template: string
  readonly instant: Instant
  readonly trackingId: string
}

/** Cuts the time and the tracking id out of an event's text. Null: the text alone does not show one of each. */
function cutOut(text: string): Cut | null {
  const time = TIME.exec(text)
  const id = TRACKING_ID.exec(text)
  if (time === null || id === null) return null
  const [timeMatch, timeText = ''] = time
  const [idMatch, idText = ''] = id
  const instant = parseInstant(timeText)
  const trackingId = parseIdentifier(idText)
  if (instant === null || trackingId === null) return null
  const timeAt = time.index + timeMatch.lastIndexOf(timeText)
  const idAt = id.index + idMatch.lastIndexOf(idText)
  const template =
    timeAt < idAt
      ? text.slice(0, timeAt) + TIME_MARK + text.slice(timeAt + timeText.length, idAt) + TRACKING_ID_MARK + text.slice(idAt + idText.length)
      : text.slice(0, idAt) + TRACKING_ID_MARK + text.slice(idAt + idText.length, timeAt) + TIME_MARK + text.slice(timeAt + timeText.length)
  return { template, instant, trackingId }
}

/**
 * What all events of a template have in common; null: the text is ambiguous. With other times and tracking ids at the marks it must parse
 * as an event with exactly these, because the marks may be inside something else or their names may occur twice.
 */
function templateOf(template: string): EventTemplate | null {
  const [first = null, second = null] = OTHERS.map((other) => readAs(template, other))
  return second === null ? null : first
}

function readAs(template: string, { time, trackingId }: (typeof OTHERS)[number]): EventTemplate | null {
  const reading = parseWebhookEvent(Buffer.from(template.replace(TIME_MARK, time).replace(TRACKING_ID_MARK, trackingId), AS_BYTES), null)
  if (!reading.ok) return null
  const { trackingIds, content, sighting, textsDropped } = reading.observation
  const { instant, ...said } = sighting
  return instant.text === time && trackingIds.length === 1 && trackingIds[0] === trackingId ? { content, said, textsDropped } : null
}

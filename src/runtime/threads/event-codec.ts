import { type Content, decodeContent } from '../../domain/history/content.ts'
import type { QuarantineReason } from '../../domain/history/observation.ts'
import type { ParsedEvent } from '../../domain/ingest/inbox.ts'

/**
 * A parsed event on its way to another thread. Most events repeat a content, so a content is sent once, and then only its number:
 *
 *   the first with some content    text: '2026-03-01T10:00:00.000Z\n1001\n{"status":...}'    content: -2, which means: call this content 0
 *   the next with the same         text: '2026-03-01T10:05:00.000Z\n1002\n'                  content: 0
 *   one with a very long content   text: '2026-03-01T10:06:00.000Z\n1003\n{"status":...}'    content: -1 (`NOT_KEPT`)
 */
export interface EncodedPush {
  /**
   * One line with the instant and, if there are any, the number of dropped texts. One line with the ids. Then the content, if its number is
   * not known. If the body is no event: an empty line, then the reason.
   */
  readonly text: string
  /**
   * 0 or more: the number of a content that was sent before. `NOT_KEPT`: the content gets no number. Lower: its new number, see `numberOf`.
   */
  readonly content: number
}

/** How many contents have a number. Both sides count alike. When all numbers are in use, the oldest is used again. */
const NUMBERS = 4096
/** Longer contents are sent in full each time. */
const CONTENT_CHARS_MAX = 2048
const NOT_KEPT = -1

/** Turns a new number into its mark, or back: 0 is -2, 1 is -3, and so on. */
const numberOf = (mark: number): number => -2 - mark

export interface EventEncoder {
  encode(reading: ParsedEvent): EncodedPush
  /** Call it when the last encoded event was sent. Otherwise the other side does not know the content of that event. */
  sent(): void
}

/** Line feeds and spaces can separate the parts: instants and identifiers contain neither, and the content is JSON on one line. */
export function createEventEncoder(): EventEncoder {
  const numbers = new Map<string, number>()
  const contents: string[] = []
  let next = 0
  /** The content that gets the next number when `sent` is called. */
  let unsent: string | null = null
  return {
    encode(reading) {
      unsent = null
      if (!reading.ok) return { text: `\n${reading.reason}`, content: NOT_KEPT }
      const { sighting, content, trackingIds, textsDropped } = reading.observation
      const [only = ''] = trackingIds
      const time = textsDropped === 0 ? sighting.instant.text : `${sighting.instant.text} ${textsDropped}`
      const own = `${time}\n${trackingIds.length === 1 ? only : trackingIds.join(' ')}\n`
      const number = numbers.get(content)
      if (number !== undefined) return { text: own, content: number }
      if (content.length > CONTENT_CHARS_MAX) return { text: own + content, content: NOT_KEPT }
      unsent = content
      return { text: own + content, content: numberOf(next) }
    },
    sent() {
      if (unsent === null) return
      const before = contents[next]
      if (before !== undefined) numbers.delete(before)
      contents[next] = unsent
      numbers.set(unsent, next)
      next = (next + 1) % NUMBERS
      unsent = null
    },
  }
}

interface KnownContent {
  readonly content: string
  readonly decoded: Content
}

/** Decodes the events of one encoder, in the same order. `atMs`: the time of the event's instant, epoch milliseconds. */
export function createEventDecoder(): (encoded: EncodedPush, atMs: number) => ParsedEvent {
  const known: KnownContent[] = []
  const read = (json: string, content: number): KnownContent => {
    const entry = { content: json, decoded: decodeContent(json) }
    if (content !== NOT_KEPT) known[numberOf(content)] = entry
    return entry
  }
  return ({ text, content: number }, atMs) => {
    const idsFrom = text.indexOf('\n') + 1
    // The encoder wrote this text, so the reason is a valid one.
    if (idsFrom === 1) return { ok: false, reason: text.slice(idsFrom) as QuarantineReason }
    const idsEnd = text.indexOf('\n', idsFrom)
    const trackingIds = text.slice(idsFrom, idsEnd).split(' ')
    const { content, decoded } = known[number] ?? read(text.slice(idsEnd + 1), number)
    const time = text.slice(0, idsFrom - 1)
    const timeEnd = time.indexOf(' ')
    const sighting = { ...decoded, instant: { atMs, text: timeEnd === -1 ? time : time.slice(0, timeEnd) } }
    const textsDropped = timeEnd === -1 ? 0 : Number(time.slice(timeEnd + 1))
    return { ok: true, observation: { kind: 'push', trackingIds, sighting, content, textsDropped } }
  }
}

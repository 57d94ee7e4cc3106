import { type Content, decodeContent } from '../../domain/history/content.ts'
import type { QuarantineReason } from '../../domain/history/observation.ts'
import type { ParsedEvent } from '../../domain/ingest/inbox.ts'

/**
 * A parsed event, encoded for another thread. Most events have the same content as an earlier one, so each content is sent in full once, and
 * afterwards only its number:
 *
 *   the first event with a content    text: '2026-03-01T10:00:00.000Z\n1001\n{"status":...}'    content: -2 (remember it as number 0)
 *   the next with the same content    text: '2026-03-01T10:05:00.000Z\n1002\n'                  content: 0
 *   an event with a long content      text: '2026-03-01T10:06:00.000Z\n1003\n{"status":...}'    content: -1 (`NOT_KEPT`)
 */
export interface EncodedPush {
  /**
   * First line: the instant and, if texts were dropped, how many. Second line: the ids. Then the content, unless `content` is 0 or more. If
   * the body is not an event: an empty line, then the reason.
   */
  readonly text: string
  /**
   * 0 or more: the number of a content that was sent before. -1 (`NOT_KEPT`): the content gets no number. -2 or less: it gets a new number.
   */
  readonly content: number
}

/** At most this many contents have a number. When all numbers are in use, the oldest number gets a new content. */
const NUMBERS = 4096
/** Longer contents are sent in full each time. */
const CONTENT_CHARS_MAX = 2048
const NOT_KEPT = -1

/** Converts a new number to the value of `content` that announces it, and back: 0 is -2, 1 is -3, and so on. */
const numberOf = (mark: number): number => -2 - mark

/** Line feeds and spaces can separate the parts, because instants and ids contain neither, and the content is JSON on one line. */
export function createEventEncoder() {
  const numbers = new Map<string, number>()
  const contents: string[] = []
  let next = 0
  /** The content that gets the next number when `sent` is called. */
  let unsent: string | null = null
  return {
    encode(reading: ParsedEvent): EncodedPush {
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
    /** Gives the content of the last encoded event its number. Call it after the event was sent, because only then the decoder gets the content. */
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

/** Creates a decoder for the events of one encoder, in the same order. `atMs`: the event's instant, in epoch milliseconds. */
export function createEventDecoder(): (encoded: EncodedPush, atMs: number) => ParsedEvent {
  const known: KnownContent[] = []
  const read = (json: string, content: number): KnownContent => {
    const entry = { content: json, decoded: decodeContent(json) }
    if (content !== NOT_KEPT) known[numberOf(content)] = entry
    return entry
  }
  return ({ text, content: number }, atMs) => {
    const idsFrom = text.indexOf('\n') + 1
    // The cast is safe, because the encoder wrote the reason.
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

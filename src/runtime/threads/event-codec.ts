import { type Content, decodeContent } from '../../domain/history/content.ts'
import type { QuarantineReason } from '../../domain/history/observation.ts'
import type { ParsedEvent } from '../../domain/ingest/inbox.ts'

/** A reading on its way: what is its own as text, and which number its content has. */
export interface EncodedPush {
  readonly text: string
  /** From 0 on: a content that was told before. `NOT_KEPT`: the text ends with the content. Less: so too, and it has the number `numberOf` says. */
  readonly content: number
}

/** How many contents have a number, on both sides alike: most events say what others have said. Then the oldest number is given anew. */
const NUMBERS = 4096
/** Longer ones are told each time. */
const CONTENT_CHARS_MAX = 2048
const NOT_KEPT = -1

/** From a number that is told for the first time to the mark that says so, and back. */
const numberOf = (mark: number): number => -2 - mark

export interface EventEncoder {
  pack(reading: ParsedEvent): EncodedPush
  /** To be called when the last one that was packed is on its way: readings arrive in the order they were sent in. */
  sent(): void
}

/** Neither an instant, nor an identifier, nor JSON holds the line feeds and spaces that part them. */
export function createEventEncoder(): EventEncoder {
  const numbers = new Map<string, number>()
  const contents: string[] = []
  let next = 0
  /** What `sent` is to give the next number to. */
  let told: string | null = null
  return {
    pack(reading) {
      told = null
      if (!reading.ok) return { text: `\n${reading.reason}`, content: NOT_KEPT }
      const { sighting, content, trackingIds } = reading.observation
      const [only = ''] = trackingIds
      const own = `${sighting.instant.text}\n${trackingIds.length === 1 ? only : trackingIds.join(' ')}\n`
      const number = numbers.get(content)
      if (number !== undefined) return { text: own, content: number }
      if (content.length > CONTENT_CHARS_MAX) return { text: own + content, content: NOT_KEPT }
      told = content
      return { text: own + content, content: numberOf(next) }
    },
    sent() {
      if (told === null) return
      const before = contents[next]
      if (before !== undefined) numbers.delete(before)
      contents[next] = told
      numbers.set(told, next)
      next = (next + 1) % NUMBERS
      told = null
    },
  }
}

interface Said {
  readonly content: string
  readonly decoded: Content
}

/** Reads what `createEventEncoder` made, all of it and in its order. `atMs`: the time that the instant's text says. */
export function createEventDecoder(): (packed: EncodedPush, atMs: number) => ParsedEvent {
  const known: Said[] = []
  const read = (json: string, content: number): Said => {
    const said = { content: json, decoded: decodeContent(json) }
    if (content !== NOT_KEPT) known[numberOf(content)] = said
    return said
  }
  return ({ text, content: number }, atMs) => {
    const idsFrom = text.indexOf('\n') + 1
    // Only the packer writes it.
    if (idsFrom === 1) return { ok: false, reason: text.slice(idsFrom) as QuarantineReason }
    const idsEnd = text.indexOf('\n', idsFrom)
    const trackingIds = text.slice(idsFrom, idsEnd).split(' ')
    const { content, decoded } = known[number] ?? read(text.slice(idsEnd + 1), number)
    const sighting = { ...decoded, instant: { atMs, text: text.slice(0, idsFrom - 1) } }
    return { ok: true, observation: { kind: 'push', trackingIds, sighting, content } }
  }
}

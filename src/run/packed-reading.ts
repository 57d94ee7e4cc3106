import { LRUCache } from 'lru-cache'
import { type Content, decodeContent } from '../domain/content.ts'
import type { QuarantineReason } from '../domain/observation.ts'
import type { EventReading } from '../domain/webhook-event.ts'

/** A reading as text. Neither an instant, nor an identifier, nor JSON holds the line feeds and spaces that part them. */
export function packReading(reading: EventReading): string {
  if (!reading.ok) return `\n${reading.reason}`
  const { sighting, content, trackingIds } = reading.observation
  return `${sighting.instant.text}\n${trackingIds.join(' ')}\n${content}`
}

/** How many different contents are kept at hand: most events say what others have said. */
const REMEMBERED = 4096

/** Reads what `packReading` wrote. `atMs`: the time that the instant's text says. */
export function createReadingUnpacker(): (text: string, atMs: number) => EventReading {
  const contents = new LRUCache<string, Content>({ max: REMEMBERED })
  const contentOf = (json: string): Content => {
    const known = contents.get(json)
    if (known !== undefined) return known
    const content = decodeContent(json)
    contents.set(json, content)
    return content
  }
  return (text, atMs) => {
    const idsFrom = text.indexOf('\n') + 1
    // Only `packReading` writes it.
    if (idsFrom === 1) return { ok: false, reason: text.slice(idsFrom) as QuarantineReason }
    const contentFrom = text.indexOf('\n', idsFrom) + 1
    const trackingIds = text.slice(idsFrom, contentFrom - 1).split(' ')
    const content = text.slice(contentFrom)
    const sighting = { ...contentOf(content), instant: { atMs, text: text.slice(0, idsFrom - 1) } }
    return { ok: true, observation: { kind: 'push', trackingIds, sighting, content } }
  }
}

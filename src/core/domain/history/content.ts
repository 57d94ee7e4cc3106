import type { RawMembers } from '../json-body.ts'
import type { Sighting, Texts } from './observation.ts'

/** The content of a sighting: all its members except its time. */
export type Content = Omit<Sighting, 'instant'>

/**
 * Encodes the content of a sighting as JSON with sorted keys. So equal contents have equal texts, and the store needs each text only once.
 * Unknown members are left out, because a carrier may change them at every poll.
 */
export function encodeContent(sighting: Content): string {
  return encode(sighting, [])
}

function encode(sighting: Content, extra: RawMembers): string {
  const texts: Record<string, Texts> = {}
  for (const language of Object.keys(sighting.texts).sort()) {
    const { consumer, detailed } = sighting.texts[language] ?? {}
    texts[language] = { ...(consumer === undefined ? {} : { consumer }), ...(detailed === undefined ? {} : { detailed }) }
  }
  return JSON.stringify({
    detailedStatus: sighting.detailedStatus,
    displayToConsumer: sighting.displayToConsumer,
    distributionType: sighting.distributionType,
    extra,
    location: sighting.location,
    source: sighting.source,
    status: sighting.status,
    texts,
  })
}

/** Decodes a text of `encodeContent`. Validates nothing. */
export function decodeContent(json: string): Content {
  return JSON.parse(json) as Content
}

/**
 * Encodes a sighting without its unknown members, as JSON with sorted keys. This text is one of the last criteria for the order in which
 * sightings join entries (DOMAIN 2.3). Unknown members are left out, because a change of them must not split an entry.
 */
export function canonicalSighting(sighting: Sighting, content: string = encodeContent(sighting)): string {
  return `{"content":${content},"eventTimestamp":${JSON.stringify(sighting.instant.text)}}`
}

/**
 * Encodes a whole sighting as JSON with sorted keys. If polls of the same time disagree, their JSON decides which one is shown:
 * the one that comes last in bytewise order (DOMAIN 2.5).
 */
export function wholeSighting(sighting: Sighting, content: string): string {
  const { extra } = sighting
  return canonicalSighting(sighting, extra.length === 0 ? content : encode(sighting, extra))
}

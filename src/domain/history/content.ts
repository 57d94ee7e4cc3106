import type { RawMembers } from '../json-body.ts'
import type { Sighting, Texts } from './status-entry.ts'

/** The content of a sighting: everything but its time. */
export type Content = Omit<Sighting, 'instant'>

/**
 * The content of a sighting as JSON with sorted keys, so that equal content gives equal text. The store keeps each text once. Unknown
 * members are left out, because a carrier may change them at every poll.
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

/** Reads the result of `encodeContent` without checking it. */
export function decodeContent(json: string): Content {
  return JSON.parse(json) as Content
}

/**
 * The sighting without unknown members, as JSON with sorted keys. If nothing else decides which sightings are one entry, this text does
 * (DOMAIN 2.3). Unknown members may change, and must not split an entry.
 */
export function canonicalSighting(sighting: Sighting, content: string = encodeContent(sighting)): string {
  return `{"content":${content},"eventTimestamp":${JSON.stringify(sighting.instant.text)}}`
}

/**
 * The whole sighting as JSON with sorted keys. If nothing else decides which of several sightings is shown, this text does (DOMAIN 2.5).
 */
export function wholeSighting(sighting: Sighting, content: string): string {
  const { extra } = sighting
  return canonicalSighting(sighting, extra.length === 0 ? content : encode(sighting, extra))
}

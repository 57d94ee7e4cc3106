import type { RawMembers } from '../json-body.ts'
import type { Sighting, Texts } from './status-entry.ts'

/** What a sighting says apart from its time. */
export type Content = Omit<Sighting, 'instant'>

/**
 * What a sighting says apart from its time, as JSON with sorted keys: equal texts are equal sayings. This is what the store keeps once
 * for all the sightings that repeat it. Unknown members are left out: a carrier may change them at every poll.
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

/** Trusted: only `encodeContent` writes what is read here. */
export function decodeContent(json: string): Content {
  return JSON.parse(json) as Content
}

/**
 * The sighting, but for unknown members, as JSON with sorted keys: the last word on which sightings are one entry (DOMAIN 2.3), so that
 * members that change cannot make two entries of one.
 */
export function canonicalSighting(sighting: Sighting, content: string = encodeContent(sighting)): string {
  return `{"content":${content},"eventTimestamp":${JSON.stringify(sighting.instant.text)}}`
}

/** All of the sighting as JSON with sorted keys: the last word on which of several speaks (DOMAIN 2.5). */
export function wholeSighting(sighting: Sighting, content: string): string {
  const { extra } = sighting
  return canonicalSighting(sighting, extra.length === 0 ? content : encode(sighting, extra))
}

import type { Sighting, Texts } from './status-entry.ts'

/** What a sighting says apart from its time. */
export type Content = Omit<Sighting, 'instant'>

/**
 * What a sighting says apart from its time, as JSON with sorted keys: equal texts are equal sayings. This is what the store keeps once
 * for all the sightings that repeat it.
 */
export function encodeContent(sighting: Content): string {
  const texts: Record<string, Texts> = {}
  for (const language of Object.keys(sighting.texts).sort()) {
    const { consumer, detailed } = sighting.texts[language] ?? {}
    texts[language] = { ...(consumer === undefined ? {} : { consumer }), ...(detailed === undefined ? {} : { detailed }) }
  }
  return JSON.stringify({
    detailedStatus: sighting.detailedStatus,
    displayToConsumer: sighting.displayToConsumer,
    distributionType: sighting.distributionType,
    extra: sighting.extra,
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

/** The sighting as JSON with sorted keys: the last word where order must be decided and nothing else decides it (DOMAIN 2.3). */
export function canonicalSighting(sighting: Sighting, content: string = encodeContent(sighting)): string {
  return `{"content":${content},"eventTimestamp":${JSON.stringify(sighting.instant.text)}}`
}

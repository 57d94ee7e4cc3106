import { parseAllAnswer } from './pull-response.ts'
import { listedId, sightingsOf } from './sightings.ts'

/**
 * Returns the `listedId` of each sighting in the bytes of a poll answer, in its order (DOMAIN 3.1). Null: this version cannot parse the bytes.
 * The list is all that the order of a history needs of an answer, so it is kept when the bytes are removed.
 */
export function listedIn(body: Uint8Array, language: string): readonly string[] | null {
  const reading = parseAllAnswer(body, { asked: '', language, contentLanguage: null, askedAtMs: 0 })
  return reading.ok ? sightingsOf(reading.observation).map(listedId) : null
}

import { type Instant, isWhole } from '../instant.ts'

/** Those that the carrier's specification shows; any other is as normal (DOMAIN 2.7). */
export const DOCUMENTED_STATUSES: readonly string[] = [
  'Created',
  'Ingested',
  'TerminalArrived',
  'TerminalUpdated',
  'DeliveryStarted',
  'DeliverySucceeded',
]

/** The texts one source gave in one language. `undefined`: not said. `null`: said to be none (only a poll can). */
export interface Texts {
  readonly consumer?: string | null
  readonly detailed?: string | null
}

/**
 * What one observation says of one entry (DOMAIN 2): a push has one, a poll one an item of its `statuses`.
 * Strings are already derived text (no NUL, no lone surrogates).
 */
export interface Sighting {
  readonly source: 'push' | 'poll'
  readonly status: string
  readonly detailedStatus: string
  readonly instant: Instant
  /** Place name; `''` is *empty*: null, absent and `""` are the same (DOMAIN 2.2). */
  readonly location: string
  /** `null`: not said. */
  readonly displayToConsumer: boolean | null
  /** Pushes only (a poll says it once for the whole answer); `null`: not said. */
  readonly distributionType: string | null
  /** By lower-case language tag. A poll's has exactly one language, a push's any number. */
  readonly texts: Readonly<Record<string, Texts>>
  /** Unknown members of a polled item: name to the JSON text as received, in the order received (DOMAIN 2.7). */
  readonly extra: readonly (readonly [name: string, json: string])[]
}

/** When and where a sighting says it was: what decides which sightings are one entry (DOMAIN 2.2). */
export interface SightingKey {
  /** Epoch milliseconds; at a whole second the start of it. */
  readonly atMs: number
  readonly whole: boolean
  readonly location: string
}

/** The key of a sighting (DOMAIN 2.2). */
export function keyOf(sighting: Sighting): SightingKey {
  return { atMs: sighting.instant.atMs, whole: isWhole(sighting.instant), location: sighting.location }
}

/** Whether two keys of one group may be the same entry: milliseconds equal or one whole, locations equal or one empty (DOMAIN 2.2). */
export function keysFit(a: SightingKey, b: SightingKey): boolean {
  return (a.whole || b.whole || a.atMs === b.atMs) && (a.location === '' || b.location === '' || a.location === b.location)
}

/** The key of an entry after a sighting joined it: it takes the milliseconds and the location it lacked (DOMAIN 2.3). */
export function joinedKey(entry: SightingKey, joining: SightingKey): SightingKey {
  const precise = entry.whole ? joining : entry
  return { atMs: precise.atMs, whole: precise.whole, location: entry.location === '' ? joining.location : entry.location }
}

/** How telling a key is, 0 the most: ms + location, ms, whole + location, whole (DOMAIN 2.3). */
export function precisionRank(key: SightingKey): number {
  return (key.whole ? 2 : 0) + (key.location === '' ? 1 : 0)
}

/** The group of a sighting within its parcel: (`status`, `detailedStatus`, second) (DOMAIN 2.1). */
export function groupOf(sighting: Sighting): string {
  // Derived text holds no NUL.
  return `${Math.floor(sighting.instant.atMs / 1000)}\0${sighting.status}\0${sighting.detailedStatus}`
}

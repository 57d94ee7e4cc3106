import { type Instant, isWhole } from '../instant.ts'

/** The statuses in the carrier's specification. Any other status is just as valid (DOMAIN 2.7). */
export const DOCUMENTED_STATUSES: readonly string[] = [
  'Created',
  'Ingested',
  'TerminalArrived',
  'TerminalUpdated',
  'DeliveryStarted',
  'DeliverySucceeded',
]

/** The detailed statuses in the carrier's specification, which are not all (DOMAIN 2.7). */
export const DOCUMENTED_DETAILED_STATUSES: readonly string[] = [
  'Created',
  'Ingested',
  'ArrivedT1',
  'ArrivedT2',
  'ArrivedT3NoAlias',
  'ParcelUpdated',
  'DeliveryStarted',
  'DeliverySucceededMailbox',
]

/** The texts of one source in one language. `undefined`: not given. `null`: stated to be none, which only a poll can do. */
export interface Texts {
  readonly consumer?: string | null
  readonly detailed?: string | null
}

/**
 * One observation's report of one entry (DOMAIN 2). A push has one sighting, a poll has one for each item of its `statuses`. Strings
 * are derived text: without NUL and lone surrogates.
 */
export interface Sighting {
  readonly source: 'push' | 'poll'
  readonly status: string
  readonly detailedStatus: string
  readonly instant: Instant
  /** The name of the location. `''` is *empty*: null, absent and `""` are the same (DOMAIN 2.2). */
  readonly location: string
  /** `null`: not given. */
  readonly displayToConsumer: boolean | null
  /** Only pushes give it here, because a poll gives it once for the whole answer. `null`: not given. */
  readonly distributionType: string | null
  /** By lower-case language tag. A poll has exactly one language, a push any number. */
  readonly texts: Readonly<Record<string, Texts>>
  /** Unknown members of a polled item: names with JSON texts, in the order received (DOMAIN 2.7). */
  readonly extra: readonly (readonly [name: string, json: string])[]
}

/** The time and the location of a sighting. They decide which sightings are one entry (DOMAIN 2.2). */
export interface SightingKey {
  /** Epoch milliseconds; for a whole second, its start. */
  readonly atMs: number
  readonly whole: boolean
  readonly location: string
}

/** The key of a sighting (DOMAIN 2.2). */
export function keyOf(sighting: Sighting): SightingKey {
  return { atMs: sighting.instant.atMs, whole: isWhole(sighting.instant), location: sighting.location }
}

/**
 * Whether two keys of one group may belong to one entry: their milliseconds are equal or one is a whole second, and their locations are
 * equal or one is empty (DOMAIN 2.2).
 */
export function keysFit(a: SightingKey, b: SightingKey): boolean {
  return (a.whole || b.whole || a.atMs === b.atMs) && (a.location === '' || b.location === '' || a.location === b.location)
}

/** The key of an entry after a sighting has joined it. The entry gains the milliseconds or the location that it lacked (DOMAIN 2.3). */
export function joinedKey(entry: SightingKey, joining: SightingKey): SightingKey {
  const precise = entry.whole ? joining : entry
  return { atMs: precise.atMs, whole: precise.whole, location: entry.location === '' ? joining.location : entry.location }
}

/**
 * How precise a key is, from 0, the most precise: milliseconds and location, milliseconds, whole second and location, whole second (DOMAIN
 * 2.3).
 */
export function precisionRank(key: SightingKey): number {
  return (key.whole ? 2 : 0) + (key.location === '' ? 1 : 0)
}

/** The group of a sighting within its parcel: (`status`, `detailedStatus`, second) (DOMAIN 2.1). */
export function groupOf(sighting: Sighting): string {
  // Derived text holds no NUL.
  return `${Math.floor(sighting.instant.atMs / 1000)}\0${sighting.status}\0${sighting.detailedStatus}`
}

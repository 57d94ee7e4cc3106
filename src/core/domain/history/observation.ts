import { type Instant, isWhole } from '../instant.ts'

export type QuarantineReason = (typeof QUARANTINE_REASONS)[number]

export const QUARANTINE_REASONS = [
  'content_encoding',
  'utf8',
  'json_syntax',
  'too_deep',
  'schema',
  'tracking_id',
  'event_time',
  'parcel_full',
  'failed',
] as const

/** Whether a push that is quarantined for this reason is a valid event, which could not be recorded. */
export function isUnderstood(reason: string): boolean {
  return reason === 'parcel_full' || reason === 'failed'
}

/** A parsed push: one event and the ids that it names. */
export interface PushObservation {
  readonly kind: 'push'
  readonly sighting: Sighting
  readonly content: string
  /** 1 to 100 ids in upper case, without duplicates, in the order of the push. */
  readonly trackingIds: readonly string[]
  /** How many texts were dropped. A text is kept only if it is a string with a language tag, the last with that tag (DOMAIN 4.1). */
  readonly textsDropped: number
}

/** A parsed answer of the carrier: one history in one language, with the time of the request. */
export interface PollObservation {
  readonly kind: 'poll'
  /** The identifier that the request named. */
  readonly asked: string
  /**
   * The lower-case tag under which the texts are stored: the answer's `Content-Language` if it is valid, otherwise the language that was
   * asked for (DOMAIN 4.1).
   */
  readonly language: string
  /** When the request was sent, epoch milliseconds. */
  readonly askedAtMs: number
  /** The exact bytes of the answer. */
  readonly body: Uint8Array
  /** In the order of the answer, newest first. */
  readonly sightings: readonly Sighting[]
  readonly trackingIds: readonly string[]
  readonly distributionType: string | null
  /** Unknown members of the answer: names with JSON texts, in the order received. */
  readonly extra: readonly (readonly [name: string, json: string])[]
  /**
   * How many invalid entries and identifiers were skipped. If any were, the answer decides neither how often an entry occurs nor the order
   * of entries (DOMAIN 6.7).
   */
  readonly skipped: number
  /** How many texts of the valid entries were dropped because they are not strings. */
  readonly textsDropped: number
  /** Set if parts about an erased parcel were removed. Then the bytes of the answer are not stored. */
  readonly isPartial?: true
}

/** An observation and, for a push, the inbox id of its bytes. */
export type ObservationSource =
  | { readonly kind: 'push'; readonly observation: PushObservation; readonly inboxId: number }
  | { readonly kind: 'poll'; readonly observation: PollObservation }

/** Returns all identifiers by which an observation names a parcel, without duplicates. */
export function identifiersOf(observation: PushObservation | PollObservation): readonly string[] {
  return observation.kind === 'push' ? observation.trackingIds : [...new Set([observation.asked, ...observation.trackingIds])]
}

/** The statuses that the carrier's specification names. Other statuses are valid too (DOMAIN 2.7). */
export const DOCUMENTED_STATUSES: readonly string[] = [
  'Created',
  'Ingested',
  'TerminalArrived',
  'TerminalUpdated',
  'DeliveryStarted',
  'DeliverySucceeded',
]

/** The detailed statuses that the carrier's specification names. Other detailed statuses are valid too (DOMAIN 2.7). */
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

/** The texts of one source in one language. Undefined: the source has no such text. Null: a poll's answer had `null` in its place. */
export interface Texts {
  readonly consumer?: string | null
  readonly detailed?: string | null
}

/**
 * What one observation reports about one entry (DOMAIN 2). A push has one sighting. A poll has a sighting for each item of its `statuses`.
 * The strings contain no NUL and no lone surrogates: U+FFFD replaces them.
 */
export interface Sighting {
  readonly source: 'push' | 'poll'
  readonly status: string
  readonly detailedStatus: string
  readonly instant: Instant
  /** The name of the location; empty: it was null, absent or `""`, which mean the same (DOMAIN 2.2). */
  readonly location: string
  /** Null: the observation does not say. */
  readonly displayToConsumer: boolean | null
  /** Null: not known. Always null for a poll, which has one `distributionType` for the whole answer. */
  readonly distributionType: string | null
  /** The texts by lower-case language tag. A poll has exactly one language; a push has any number of them. */
  readonly texts: Readonly<Record<string, Texts>>
  /** Unknown members of a polled item: names with JSON texts, in the order received (DOMAIN 2.7). */
  readonly extra: readonly (readonly [name: string, json: string])[]
}

/** The time and the location of a sighting. They decide which sightings are one entry (DOMAIN 2.2). */
export interface SightingKey {
  /** Epoch milliseconds. If `whole`, the start of the second, because the milliseconds are not known. */
  readonly atMs: number
  readonly whole: boolean
  readonly location: string
}

export function keyOf(sighting: Sighting): SightingKey {
  return { atMs: sighting.instant.atMs, whole: isWhole(sighting.instant), location: sighting.location }
}

/**
 * Whether two keys of one group may belong to one entry (DOMAIN 2.2). Their milliseconds must be equal, or one must be a whole second. Their
 * locations must be equal, or one must be empty.
 */
export function keysFit(a: SightingKey, b: SightingKey): boolean {
  return (a.whole || b.whole || a.atMs === b.atMs) && (a.location === '' || b.location === '' || a.location === b.location)
}

/** Returns the key of an entry after a sighting has joined it. The sighting adds milliseconds or a location that the entry lacked (DOMAIN 2.3). */
export function joinedKey(entry: SightingKey, joining: SightingKey): SightingKey {
  const precise = entry.whole ? joining : entry
  return { atMs: precise.atMs, whole: precise.whole, location: entry.location === '' ? joining.location : entry.location }
}

/**
 * Returns how precise a key is (DOMAIN 2.3). 0: milliseconds and location. 1: milliseconds. 2: a whole second and location. 3: a whole
 * second.
 */
export function precisionRank(key: SightingKey): number {
  return (key.whole ? 2 : 0) + (key.location === '' ? 1 : 0)
}

/** Returns the group of a sighting within its parcel: its second, `status` and `detailedStatus` (DOMAIN 2.1). */
export function groupOf(sighting: Sighting): string {
  // NUL can separate the parts, because the strings of a sighting contain none.
  return `${Math.floor(sighting.instant.atMs / 1000)}\0${sighting.status}\0${sighting.detailedStatus}`
}

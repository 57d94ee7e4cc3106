import type { Sighting } from './status-entry.ts'

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

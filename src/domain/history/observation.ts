import type { Sighting } from './status-entry.ts'

/** Why a verified body is no event (DOMAIN 5.3, 1.6; FAULTS 2). */
export type QuarantineReason =
  | 'content_encoding'
  | 'utf8'
  | 'json_syntax'
  | 'too_deep'
  | 'schema'
  | 'tracking_id'
  | 'event_time'
  | 'parcel_full'
  | 'failed'

/** A push that was understood: one event, with the ids it names. */
export interface PushObservation {
  readonly kind: 'push'
  readonly sighting: Sighting
  /** `encodeContent(sighting)` */
  readonly content: string
  /** 1 to 100, folded, no duplicates, in the order given. */
  readonly trackingIds: readonly string[]
}

/** A poll's whole answer: one history in one language, with its time of asking. */
export interface PollObservation {
  readonly kind: 'poll'
  /** The identifier that was asked for. */
  readonly asked: string
  /** Lower-case tag the texts are stored under: the answer's valid `Content-Language`, else the one asked (DOMAIN 4.1). */
  readonly language: string
  /** Epoch milliseconds at which the question left. */
  readonly askedAtMs: number
  /** The exact bytes of the answer. */
  readonly body: Uint8Array
  /** In the order of the answer (newest first). */
  readonly sightings: readonly Sighting[]
  readonly trackingIds: readonly string[]
  readonly distributionType: string | null
  /** Unknown members of the answer: name to JSON text, in the order received. */
  readonly extra: readonly (readonly [name: string, json: string])[]
  /** Entries and identifiers that were skipped as bad; more than 0: the answer decides neither multiplicity nor order (DOMAIN 6.7). */
  readonly skipped: number
}

/** All that an observation names a parcel by. */
export function identifiersOf(observation: PushObservation | PollObservation): readonly string[] {
  return observation.kind === 'push' ? observation.trackingIds : [...new Set([observation.asked, ...observation.trackingIds])]
}

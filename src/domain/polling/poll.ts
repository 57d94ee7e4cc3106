import type { PollObservation } from '../history/observation.ts'
import type { MissedPushes } from './model-codec.ts'
import type { PushHealth } from './push-health.ts'

/** A parcel whose next poll is due, leased to the caller until `leaseMs` from the claim. */
export interface DuePoll {
  readonly parcelId: number
  /** In the order to try them: tracking numbers first, those the carrier does not know left out (DOMAIN 6.3). */
  readonly identifiers: readonly string[]
}

/** A question in one language for a parcel's entries, when it has been answered. */
export interface LanguageAsked {
  readonly parcelId: number
  readonly language: string
  /** The last entry that was known when the question left, by its sequence; 0: none was. */
  readonly knownTo: number
  /** The answer, which may list entries that came since; null: there was nothing to record. */
  readonly answer: Pick<PollObservation, 'language' | 'askedAtMs'> | null
}

/** How a poll of a parcel ended without an answer to record. */
export interface PollFailure {
  readonly parcelId: number
  /** `unknown`: the carrier knows none of its identifiers. `unavailable`: it could not be asked or answered badly. */
  readonly kind: 'unknown' | 'unavailable'
  readonly atMs: number
  /** The carrier's own word on when to ask again, if it gave one. */
  readonly retryAfterMs?: number
}

export interface MissedPush {
  readonly parcelId: number
  /** One that the API accepts; null: the carrier knows none of its. */
  readonly identifier: string | null
  readonly eventAtMs: number
  readonly foundAtMs: number
}

export interface WatchResult {
  readonly parcelId: number
  /** No parcel had the identifier. */
  readonly created: boolean
}

export interface PushChannelView {
  readonly health: PushHealth
  /** The part of entries whose push is lost, as far as it can be told. */
  readonly loss: number
  /** The last push that brought something new; null: none ever did. */
  readonly lastPushAtMs: number | null
  /** Entries since then that only polls brought. */
  readonly missedSincePush: number
  readonly missed: MissedPushes
}

export interface PushHealthUpdate {
  readonly health: PushHealth
  /** An operator event was queued. */
  readonly eventQueued: boolean
}

/** A place in the order of falling due. */
export interface DueCursor {
  readonly parcelId: number
  readonly dueAtMs: number
}

export interface PollCandidate extends DuePoll {
  /** A push came since the last check, so that the check may no longer be due. */
  readonly pushedSince: boolean
}

/** An entry that only polls have brought so far, until its grace is over (DOMAIN 6.6). */
export interface ExpectedPush {
  readonly parcelId: number
  readonly entry: number
  readonly eventAtMs: number
  readonly foundAtMs: number
}

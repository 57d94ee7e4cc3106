import type { PollObservation } from '../history/observation.ts'
import type { MissedPushes } from './model-codec.ts'
import type { PushHealth, SilenceEvidence } from './push-health.ts'

/** A parcel that is due to be polled, leased to the caller. */
export interface DuePoll {
  readonly parcelId: number
  /** In the order in which to try them: tracking numbers first, without identifiers that the carrier does not know (DOMAIN 6.3). */
  readonly identifiers: readonly string[]
}

/** An answered poll of a known parcel in one language. */
export interface LanguageAsked {
  readonly parcelId: number
  readonly language: string
  /** The highest sequence of the entries known when the request left; 0: none. */
  readonly knownTo: number
  /** The answer, which may list entries that were added since; null: there was nothing to record. */
  readonly answer: Pick<PollObservation, 'language' | 'askedAtMs'> | null
}

/** A poll that brought no answer to record. */
export interface PollFailure {
  readonly parcelId: number
  /**
   * `unknown`: the carrier knows none of its identifiers. `unusable`: it answered the question, but nothing in the answer can be used.
   * `unavailable`: it gave no answer, or one that could not be recorded. `not_asked`: the question did not leave.
   */
  readonly kind: 'unknown' | 'unusable' | 'unavailable' | 'not_asked'
  readonly atMs: number
  /** The carrier's `Retry-After`, if it sent one. */
  readonly retryAfterMs?: number
}

/** An entry whose push never arrived. Times are epoch milliseconds. */
export interface MissedPush {
  readonly parcelId: number
  /** An identifier that the API accepts; null: the carrier knows none of them. */
  readonly identifier: string | null
  readonly eventAtMs: number
  readonly foundAtMs: number
}

/** The result of watching an identifier. */
export interface WatchResult {
  readonly parcelId: number
  /** Whether the parcel is new. */
  readonly created: boolean
  /**
   * When the carrier may be asked again about a parcel that stays stopped because the carrier does not know it, epoch milliseconds. Null:
   * it is polled, or may be revived at any time.
   */
  readonly revivesAtMs: number | null
}

/** The state of the push channel, for operators. */
export interface PushChannelView {
  readonly health: PushHealth
  /** The estimated share of entries whose push is lost, 0 to 1. */
  readonly loss: number
  /** When the last push with news arrived, epoch milliseconds; null: never. */
  readonly lastPushAtMs: number | null
  /** The number of entries since then that only polls reported. */
  readonly missedSincePush: number
  /** The evidence of the silence, if there is one; null: there is none, or the evidence is not known any more. */
  readonly silence: SilenceEvidence | null
  readonly missed: MissedPushes
}

/** The health of pushes after a checkpoint. */
export interface PushHealthUpdate {
  readonly health: PushHealth
  /** Whether an operator event was queued. */
  readonly eventQueued: boolean
}

/** Where a page in the order of due polls begins: after this one. */
export interface DueCursor {
  readonly parcelId: number
  readonly dueAtMs: number
}

/** A due parcel before it is claimed. */
export interface PollCandidate extends DuePoll {
  /** Whether a push arrived since the last poll, so that the poll may no longer be due. */
  readonly pushedSince: boolean
  /** Whether the carrier answered when it was last asked about it. */
  readonly lastAnswered: boolean
}

/** An entry that only polls have reported so far, while its push may still arrive (DOMAIN 6.6). */
export interface ExpectedPush {
  readonly parcelId: number
  readonly entry: number
  readonly eventAtMs: number
  readonly foundAtMs: number
}

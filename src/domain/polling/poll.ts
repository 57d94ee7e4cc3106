import type { PollObservation } from '../history/observation.ts'
import type { MissedPushes } from './model-codec.ts'
import type { PastSilence, Probation, PushHealth, SilenceEvidence } from './push-health.ts'

/** A parcel whose poll is due and leased to the caller. */
export interface DuePoll {
  readonly parcelId: number
  /**
   * The identifiers to try, in this order: tracking numbers first. Identifiers that the carrier does not know are left out (DOMAIN 6.3).
   */
  readonly identifiers: readonly string[]
}

/** A poll of a known parcel in one language that the carrier answered. */
export interface LanguageAsked {
  readonly parcelId: number
  readonly language: string
  /** The highest sequence among the entries that were known when the request was sent; 0: none. */
  readonly knownTo: number
  /** The answer; null: there was nothing to record. It may list entries that were added after `knownTo`. */
  readonly answer: Pick<PollObservation, 'language' | 'askedAtMs'> | null
}

/** A poll without an answer to record. */
export interface PollFailure {
  readonly parcelId: number
  /**
   * `unknown`: the carrier knows none of its identifiers. `unusable`: nothing in the answer can be used. `unavailable`: there was no
   * answer, or it could not be recorded. `not_asked`: the question was never sent.
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
}

/** The state of the push channel, for operators. */
export interface PushChannelView {
  readonly health: PushHealth
  /** The estimated share of entries whose push is lost, 0 to 1. */
  readonly loss: number
  /** When the last push with news arrived, epoch milliseconds; null: never. */
  readonly lastPushAtMs: number | null
  /**
   * When the store was restored from a backup, epoch milliseconds, if that was after the last push that it holds. Pushes that came between
   * the backup and then are not known. Null: it was not.
   */
  readonly restoredAtMs: number | null
  /** Entries since that push that only polls reported. */
  readonly missedSincePush: number
  /** The proof of the present silence; null: pushes are not silent, or the proof is no longer known. */
  readonly silence: SilenceEvidence | null
  /** The last silence that is over; null: there was none. */
  readonly lastSilence: PastSilence | null
  /** Since when pushes have to prove themselves, and when they are trusted; null: they have nothing to prove, or are in trouble. */
  readonly probation: Probation | null
  /** How many of the newest pushes went into quarantine because they were not understood. */
  readonly newest: NewestPushes
  readonly missed: MissedPushes
}

/** The newest pushes, a few at most. */
export interface NewestPushes {
  readonly count: number
  /** How many of them were not understood. */
  readonly misread: number
  /** Whether these are too many to rely on pushes. */
  readonly areTooMany: boolean
  /** When the last one came that was not understood, epoch milliseconds; null: there was none. */
  readonly misreadAtMs: number | null
}

/** The health of pushes after a checkpoint. */
export interface PushHealthUpdate {
  readonly health: PushHealth
  /** Whether an operator event was queued. */
  readonly eventQueued: boolean
}

/** A page of due polls begins after this poll. */
export interface DueCursor {
  readonly parcelId: number
  readonly dueAtMs: number
}

/** A due parcel before it is claimed. */
export interface PollCandidate extends DuePoll {
  /** Whether a push arrived since the last poll, so that the poll may no longer be due. */
  readonly pushedSince: boolean
  /** Whether the carrier answered the last call about it. */
  readonly lastAnswered: boolean
}

/** An entry that only polls have reported so far. Its push may still arrive (DOMAIN 6.6). */
export interface ExpectedPush {
  readonly parcelId: number
  readonly entry: number
  readonly eventAtMs: number
  readonly foundAtMs: number
}

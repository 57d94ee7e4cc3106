import type { PollObservation } from '../history/observation.ts'
import type { MissedPushes } from './model-codec.ts'
import type { PastSilence, Probation, PushHealth, SilenceEvidence } from './push-health.ts'

/** A parcel whose poll is due, leased to the caller so that no other process polls it at the same time. */
export interface DuePoll {
  readonly parcelId: number
  /** The identifiers to try, in order, tracking numbers first. Leaves out identifiers that the carrier did not know lately (DOMAIN 6.3). */
  readonly identifiers: readonly string[]
}

/** An answered poll of a known parcel for its texts in one language. */
export interface LanguageAsked {
  readonly parcelId: number
  readonly language: string
  /** The highest sequence of the entries that were known when the request was sent; 0: no entry was known. */
  readonly knownTo: number
  /** The answer, which may list entries that were added after `knownTo`; null: the answer had nothing to record. */
  readonly answer: Pick<PollObservation, 'language' | 'askedAtMs'> | null
}

/** A poll that brought no answer to record. */
export interface PollFailure {
  readonly parcelId: number
  /**
   * `unknown`: the carrier knows none of the parcel's identifiers. `unusable`: nothing in the answer can be used. `unavailable`: there was no
   * answer, or it could not be recorded. `not_asked`: the request was not sent.
   */
  readonly kind: 'unknown' | 'unusable' | 'unavailable' | 'not_asked'
  readonly atMs: number
  /** The carrier's `Retry-After`, milliseconds; absent: it sent none. */
  readonly retryAfterMs?: number
  /** Since when the carrier answers no question, epoch milliseconds; absent: it answers some. */
  readonly failsSinceMs?: number | undefined
}

/** An entry whose push never arrived. Times are epoch milliseconds. */
export interface MissedPush {
  readonly parcelId: number
  /** An identifier to ask the carrier about; null: lately the carrier knew none of the parcel's identifiers. */
  readonly identifier: string | null
  readonly eventAtMs: number
  readonly foundAtMs: number
}

export interface WatchResult {
  readonly parcelId: number
  readonly created: boolean
}

/** The state of the push channel, that is, of all pushes from the carrier, for operators. */
export interface PushChannelView {
  readonly health: PushHealth
  /** The estimated share of entries whose push is lost, from 0 to 1. */
  readonly loss: number
  /** When the last push with news arrived, epoch milliseconds; null: never. */
  readonly lastPushAtMs: number | null
  /**
   * When the store was restored from a backup, epoch milliseconds; null: never, or a push has come since. Pushes that came between the
   * backup and the restore are not known.
   */
  readonly restoredAtMs: number | null
  /** How many entries happened after the last push and were reported only by polls. */
  readonly missedSincePush: number
  /** The evidence for the present silence; null: pushes are not silent, or the evidence is no longer known. */
  readonly silence: SilenceEvidence | null
  /** The last silence that has ended; null: there was none. */
  readonly lastSilence: PastSilence | null
  /** The trial of pushes; null: pushes have proved reliable, are silent, or are lost too often. */
  readonly probation: Probation | null
  readonly newest: NewestPushes
  readonly missed: MissedPushes
}

/** Counts of the few newest pushes. */
export interface NewestPushes {
  readonly count: number
  /** How many of them went into quarantine because they were not understood. */
  readonly misread: number
  /** Whether `misread` is so high that the relay does not rely on pushes. */
  readonly areTooMany: boolean
  /** When the last misread push came, epoch milliseconds; null: none was misread. */
  readonly misreadAtMs: number | null
}

/** The health of pushes after the model of the carrier was saved. */
export interface PushHealthUpdate {
  readonly health: PushHealth
  /** Whether a change of the health queued an event for operators. */
  readonly eventQueued: boolean
}

/** The last poll of a page of due polls. The next page begins after it. */
export interface DueCursor {
  readonly parcelId: number
  readonly dueAtMs: number
}

/** A parcel whose poll is due. No process has claimed the poll yet. */
export interface PollCandidate extends DuePoll {
  /** Whether a push about the parcel arrived since the last poll. If so, the poll may no longer be due. */
  readonly pushedSince: boolean
  /** When the last poll failed, epoch milliseconds; null: it was answered, or there was none. */
  readonly failedAtMs: number | null
}

/** An entry that only polls have reported so far. The relay still expects its push (DOMAIN 6.6). */
export interface ExpectedPush {
  readonly parcelId: number
  readonly entry: number
  readonly eventAtMs: number
  readonly foundAtMs: number
}

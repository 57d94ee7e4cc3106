import { wallClockMs } from '../calendar.ts'
import type { PollObservation } from '../history/observation.ts'
import { countsFromMs, type ParcelState } from '../history/parcel-state.ts'
import { notAhead, retryAfterMaxMs } from '../instant.ts'
import { type CadenceFacts, type CadenceModel, type CadencePolicy, nextPoll } from './cadence.ts'
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

/** Hours of the day without scheduled polls. If `to` is before `from`, the quiet hours include midnight. */
interface QuietHours {
  /** Written as `HH:MM`, like `to`. */
  readonly from: string
  readonly to: string
  /** An IANA time zone. */
  readonly zone: string
}

/** Whether `nowMs` (epoch milliseconds) is within the quiet hours, by the time of day in their zone. */
export function isQuiet(nowMs: number, { from, to, zone }: QuietHours): boolean {
  const time = new Date(wallClockMs(zone, nowMs)).toISOString().slice('YYYY-MM-DDT'.length, 'YYYY-MM-DDTHH:MM'.length)
  return from <= to ? from <= time && time < to : from <= time || time < to
}

/**
 * Returns the data on which the next poll of a parcel depends. Times in the future are replaced by the present time: the carrier's clock may
 * be ahead, or ours may have been put back (DOMAIN 6.1).
 */
export function cadenceFactsOf(parcel: ParcelState, unpollable: boolean, nowMs: number): CadenceFacts {
  const { parcelId, latest, entryCount, watchedAtMs, activatedAtMs, checkedAtMs, failures } = parcel
  return {
    parcelId,
    latest: latest === null ? null : { status: latest.status, atMs: notAhead(countsFromMs(latest), nowMs) },
    entryCount,
    watchedAtMs: notAhead(watchedAtMs, nowMs),
    activatedAtMs: notAhead(activatedAtMs, nowMs),
    checkedAtMs: notAhead(checkedAtMs, nowMs),
    failures,
    unpollable,
  }
}

/**
 * @param pollableFromMs When the carrier may next be asked about the parcel, epoch milliseconds; null: never. Needed only if polling has
 * stopped because the carrier did not know the parcel.
 */
export function scheduleNextPoll(
  parcel: ParcelState,
  pollableFromMs: number | null,
  model: CadenceModel,
  cadence: CadencePolicy,
  nowMs: number,
): ParcelState {
  if (parcel.watchedAtMs === null || parcel.stopped === 'unwatched') return { ...parcel, nextPollAtMs: null }
  const unpollable = parcel.stopped === 'unknown' && (pollableFromMs === null || pollableFromMs > nowMs)
  // The carrier did not know the parcel. A push or an app's question has come since, so poll as soon as allowed (DOMAIN 6.1, 6.3).
  if (unpollable && (parcel.nextPollAtMs !== null || isAskedFor(parcel, nowMs))) return { ...parcel, nextPollAtMs: pollableFromMs }
  const next = nextPoll(cadenceFactsOf(parcel, unpollable, nowMs), model, cadence)
  if (next.kind === 'stopped') return { ...parcel, nextPollAtMs: null, stopped: next.reason }
  return { ...parcel, nextPollAtMs: Math.max(next.atMs, heldUntilMs(parcel, nowMs)), stopped: null }
}

/** Whether a push or an app's question may have come since the last poll. It may have, if a clock step has put that poll into the future. */
function isAskedFor({ activatedAtMs, checkedAtMs }: ParcelState, nowMs: number): boolean {
  return checkedAtMs === null || checkedAtMs > nowMs || activatedAtMs > checkedAtMs
}

/**
 * Returns the earliest time for the next poll of a parcel whose last poll failed. A push or an app's question must not make the next poll earlier,
 * because the carrier may have answered with `Retry-After`, and only the planned time of the next poll shows this. The wait is limited to the
 * longest `Retry-After` (DOMAIN 6.4).
 */
function heldUntilMs({ failures, checkedAtMs, nextPollAtMs }: ParcelState, nowMs: number): number {
  if (failures === 0 || checkedAtMs === null || nextPollAtMs === null) return Number.NEGATIVE_INFINITY
  return Math.min(nextPollAtMs, notAhead(checkedAtMs, nowMs) + retryAfterMaxMs)
}

/**
 * Keeps the planned time of the next poll if a push would make the poll later. When that time comes, the poller moves the poll. In this way
 * many pushes move it only once.
 */
export function keepEarlierPoll(scheduled: ParcelState, plannedMs: number | null): ParcelState {
  if (plannedMs === null || scheduled.nextPollAtMs === null || scheduled.nextPollAtMs <= plannedMs) return scheduled
  return { ...scheduled, nextPollAtMs: plannedMs }
}

/** Returns what changes in a parcel so that it is polled again, after a push or an app's question (DOMAIN 6.1). */
export function reactivate(parcel: ParcelState, nowMs: number): Pick<ParcelState, 'watchedAtMs' | 'activatedAtMs' | 'stopped'> {
  return {
    watchedAtMs: parcel.watchedAtMs ?? nowMs,
    activatedAtMs: Math.max(parcel.activatedAtMs, nowMs),
    stopped: parcel.stopped === 'unwatched' ? null : parcel.stopped,
  }
}

import { countsFromMs, type ParcelState } from '../history/parcel-state.ts'
import { notAhead } from '../put-back.ts'
import { retryAfterMaxMs } from '../retry-after.ts'
import { type CadenceFacts, type CadenceModel, type CadencePolicy, nextPoll } from './cadence.ts'

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

import { countsFromMs, type ParcelState } from '../history/parcel-state.ts'
import { notAhead } from '../put-back.ts'
import { retryAfterMaxMs } from '../retry-after.ts'
import { type CadenceFacts, type CadenceModel, type CadencePolicy, nextPoll } from './cadence.ts'

/**
 * The facts on which the next poll of a parcel depends, at `nowMs`. A time in the future counts as now: the carrier's clock may be ahead,
 * or ours may have been put back (DOMAIN 6.1).
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
 * Schedules the next poll of a parcel.
 *
 * @param pollableFromMs from when the carrier may be asked about it, epoch milliseconds; null: never. It matters only if polling has stopped
 * because the carrier did not know the parcel.
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
  // Somebody has asked for a parcel since the carrier did not know it. Its poll waits until the carrier may be asked (DOMAIN 6.1, 6.3).
  if (unpollable && (parcel.nextPollAtMs !== null || isAskedFor(parcel, nowMs))) return { ...parcel, nextPollAtMs: pollableFromMs }
  const next = nextPoll(cadenceFactsOf(parcel, unpollable, nowMs), model, cadence)
  if (next.kind === 'stopped') return { ...parcel, nextPollAtMs: null, stopped: next.reason }
  return { ...parcel, nextPollAtMs: Math.max(next.atMs, heldUntilMs(parcel, nowMs)), stopped: null }
}

/** Whether a push or a question came since the last poll. A poll in the future is from before our clock was put back, so it cannot tell. */
function isAskedFor({ activatedAtMs, checkedAtMs }: ParcelState, nowMs: number): boolean {
  return checkedAtMs === null || checkedAtMs > nowMs || activatedAtMs > checkedAtMs
}

/**
 * The earliest time at which a parcel may be polled after a failure. The carrier may have answered it with `Retry-After`, and only the planned
 * time tells. So that time stays, whatever plans the parcel again (a push, an app's question, pushes that fall silent), but no longer than a
 * `Retry-After` can last (DOMAIN 6.4).
 */
function heldUntilMs({ failures, checkedAtMs, nextPollAtMs }: ParcelState, nowMs: number): number {
  if (failures === 0 || checkedAtMs === null || nextPollAtMs === null) return Number.NEGATIVE_INFINITY
  return Math.min(nextPollAtMs, notAhead(checkedAtMs, nowMs) + retryAfterMaxMs)
}

/**
 * Keeps the planned time of a poll that a push would postpone. At that time the poller does not poll, but plans the poll again, with
 * everything that pushes have changed meanwhile. This way many pushes cost only one planning.
 */
export function keepEarlierPoll(scheduled: ParcelState, plannedMs: number | null): ParcelState {
  if (plannedMs === null || scheduled.nextPollAtMs === null || scheduled.nextPollAtMs <= plannedMs) return scheduled
  return { ...scheduled, nextPollAtMs: plannedMs }
}

/** Makes the relay poll a parcel again, for whatever reason polling stopped. A push or an app's question does this (DOMAIN 6.1). */
export function reactivate(parcel: ParcelState, nowMs: number): Pick<ParcelState, 'watchedAtMs' | 'activatedAtMs' | 'stopped'> {
  return {
    watchedAtMs: parcel.watchedAtMs ?? nowMs,
    activatedAtMs: Math.max(parcel.activatedAtMs, nowMs),
    stopped: parcel.stopped === 'unwatched' ? null : parcel.stopped,
  }
}

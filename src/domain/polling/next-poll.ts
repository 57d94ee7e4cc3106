import { countsFromMs, type ParcelState } from '../history/parcel-state.ts'
import { notAhead } from '../put-back.ts'
import { type CadenceFacts, type CadenceModel, type CadencePolicy, nextPoll } from './cadence.ts'

/**
 * The facts on which a parcel's next poll depends, as of `nowMs`. A past event cannot be ahead of the clock, neither because the carrier's
 * clock is ahead nor because ours was put back since (DOMAIN 6.1).
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
 * Schedules the next poll of a parcel. `isPollable`: whether the carrier may be asked about any of its identifiers; called only if that
 * matters.
 */
export function scheduleNextPoll(
  parcel: ParcelState,
  isPollable: () => boolean,
  model: CadenceModel,
  cadence: CadencePolicy,
  nowMs: number,
): ParcelState {
  if (parcel.watchedAtMs === null || parcel.stopped === 'unwatched') return { ...parcel, nextPollAtMs: null }
  // Polling stopped because the carrier does not know the parcel. It may resume if a new identifier has arrived or the refusal is old
  // enough.
  const unpollable = parcel.stopped === 'unknown' && !isPollable()
  const next = nextPoll(cadenceFactsOf(parcel, unpollable, nowMs), model, cadence)
  if (next.kind === 'stopped') return { ...parcel, nextPollAtMs: null, stopped: next.reason }
  return { ...parcel, nextPollAtMs: next.atMs, stopped: null }
}

/** Keeps an earlier poll that a push would postpone. When its time comes, it is scheduled again, once for all pushes since. */
export function keepEarlierPoll(scheduled: ParcelState, plannedMs: number | null): ParcelState {
  if (plannedMs === null || scheduled.nextPollAtMs === null || scheduled.nextPollAtMs <= plannedMs) return scheduled
  return { ...scheduled, nextPollAtMs: plannedMs }
}

/** Reactivates a parcel, whatever had stopped its polling. Both a push and an app's question do this (DOMAIN 6.1). */
export function reactivate(parcel: ParcelState, nowMs: number): Pick<ParcelState, 'watchedAtMs' | 'activatedAtMs' | 'stopped'> {
  return {
    watchedAtMs: parcel.watchedAtMs ?? nowMs,
    activatedAtMs: Math.max(parcel.activatedAtMs, nowMs),
    stopped: parcel.stopped === 'unwatched' ? null : parcel.stopped,
  }
}

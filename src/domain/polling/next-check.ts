import type { ParcelState } from '../history/parcel-state.ts'
import { type CadenceModel, type CadencePolicy, nextCheck } from './cadence.ts'

/** Sets when a parcel is asked about again. `isPollable`: whether the carrier may be asked for any of its identifiers. */
export function scheduleCheck(parcel: ParcelState, isPollable: () => boolean, model: CadenceModel, cadence: CadencePolicy): ParcelState {
  if (parcel.watchedAtMs === null || parcel.stopped === 'unwatched') return { ...parcel, nextPollAtMs: null }
  // A parcel the carrier did not know: a new identifier may have come, or the refusal may be old enough. Others need no look.
  const unpollable = parcel.stopped === 'unknown' && !isPollable()
  const next = nextCheck({ ...parcel, unpollable }, model, cadence)
  if (next.kind === 'stopped') return { ...parcel, nextPollAtMs: null, stopped: next.reason }
  return { ...parcel, nextPollAtMs: next.atMs, stopped: null }
}

/** A check that a push puts off stays where it is: whether it is later by now is found when its time has come, once for all pushes. */
export function keepEarlierCheck(scheduled: ParcelState, plannedMs: number | null): ParcelState {
  if (plannedMs === null || scheduled.nextPollAtMs === null || scheduled.nextPollAtMs <= plannedMs) return scheduled
  return { ...scheduled, nextPollAtMs: plannedMs }
}

/** What makes a parcel watched again, whatever had stopped it: a push and an app's question both do (DOMAIN 6.1). */
export function reactivate(parcel: ParcelState, nowMs: number): Pick<ParcelState, 'watchedAtMs' | 'activatedAtMs' | 'stopped'> {
  return {
    watchedAtMs: parcel.watchedAtMs ?? nowMs,
    activatedAtMs: Math.max(parcel.activatedAtMs, nowMs),
    stopped: parcel.stopped === 'unwatched' ? null : parcel.stopped,
  }
}

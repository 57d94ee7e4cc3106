import type { ParcelState } from '../../domain/history/parcel-state.ts'
import { type CadenceModel, type CadencePolicy, nextCheck } from '../../domain/polling/cadence.ts'
import type { Clock } from '../ports.ts'
import type { WriteTx } from '../write-store.ts'

export interface PlanPorts {
  readonly clock: Pick<Clock, 'now'>
  /** What holds for every parcel's next check at this time. */
  readonly outlook: () => CadenceModel
}

/** Sets when the parcel is asked about again. */
export async function schedule(
  tx: WriteTx,
  parcel: ParcelState,
  ports: PlanPorts,
  { cadence }: { readonly cadence: CadencePolicy },
): Promise<ParcelState> {
  if (parcel.watchedAtMs === null || parcel.stopped === 'unwatched') return { ...parcel, nextPollAtMs: null }
  // A parcel the carrier did not know: a new identifier may have come, or the refusal may be old enough. Others need no look.
  const unpollable = parcel.stopped === 'unknown' && (await tx.pollableIdentifiers(parcel.parcelId, ports.clock.now())).length === 0
  const next = nextCheck({ ...parcel, unpollable }, ports.outlook(), cadence)
  if (next.kind === 'stopped') return { ...parcel, nextPollAtMs: null, stopped: next.reason }
  return { ...parcel, nextPollAtMs: next.atMs, stopped: null }
}

/** A check that a push puts off stays where it is: that it is later by now is found when its time has come (flow/claim-due), once for all pushes. */
export function noLater(scheduled: ParcelState, plannedMs: number | null): ParcelState {
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

import { type CadenceOutlook, type CadencePolicy, nextCheck } from '../domain/cadence.ts'
import type { Clock, ParcelState, WriteTx } from './ports.ts'

export interface PlanPorts {
  readonly clock: Pick<Clock, 'now'>
  /** What holds for every parcel's next check at this time. */
  readonly outlook: () => CadenceOutlook
}

/** When a parcel is asked about again. */
type Plan = Pick<ParcelState, 'nextPollAtMs' | 'stopped'>

interface PlanOptions {
  readonly cadence: CadencePolicy
}

/** Sets when the parcel is asked about again. */
export async function schedule(tx: WriteTx, parcel: ParcelState, ports: PlanPorts, options: PlanOptions): Promise<ParcelState> {
  return { ...parcel, ...planCheck(parcel, mayBeUnpollable(parcel) && (await isUnpollable(tx, parcel, ports)), ports, options) }
}

/** A parcel the carrier did not know: a new identifier may have come, or the refusal may be old enough. Others need no look. */
export function mayBeUnpollable({ stopped }: ParcelState): boolean {
  return stopped === 'unknown'
}

/** Whether the carrier knows none of its identifiers. */
export async function isUnpollable(tx: WriteTx, { parcelId }: ParcelState, { clock }: PlanPorts): Promise<boolean> {
  return (await tx.pollableIdentifiers(parcelId, clock.now())).length === 0
}

/** For a parcel of which it is known whether it can be asked about. */
export function planCheck(parcel: ParcelState, unpollable: boolean, ports: PlanPorts, { cadence }: PlanOptions): Plan {
  if (parcel.watchedAtMs === null || parcel.stopped === 'unwatched') return { nextPollAtMs: null, stopped: parcel.stopped }
  const next = nextCheck({ ...parcel, unpollable }, ports.outlook(), cadence)
  return next.kind === 'stopped' ? { nextPollAtMs: null, stopped: next.reason } : { nextPollAtMs: next.atMs, stopped: null }
}

/** A check that a push puts off stays where it is: that it is later by now is found when its time has come (flow/claim-due), once for all pushes. */
export function noLater(plan: Plan, plannedMs: number | null): Plan {
  if (plannedMs === null || plan.nextPollAtMs === null || plan.nextPollAtMs <= plannedMs) return plan
  return { ...plan, nextPollAtMs: plannedMs }
}

/** What makes a parcel watched again, whatever had stopped it: a push and an app's question both do (DOMAIN 6.1). */
export function revival(parcel: ParcelState, nowMs: number): Pick<ParcelState, 'watchedAtMs' | 'revivedAtMs' | 'stopped'> {
  return {
    watchedAtMs: parcel.watchedAtMs ?? nowMs,
    revivedAtMs: Math.max(parcel.revivedAtMs, nowMs),
    stopped: parcel.stopped === 'unwatched' ? null : parcel.stopped,
  }
}

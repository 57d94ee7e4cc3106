import type { ParcelState } from '../../domain/history/parcel-state.ts'
import type { CadenceModel, CadencePolicy } from '../../domain/polling/cadence.ts'
import { scheduleNextPoll } from '../../domain/polling/next-poll.ts'
import type { Clock } from '../ports.ts'
import type { WriteTx } from '../write-store.ts'

export interface SchedulePorts {
  readonly clock: Pick<Clock, 'now'>
  /** Returns the current model, by which next polls are scheduled. */
  readonly model: () => CadenceModel
}

/** Schedules the next poll of a parcel. */
export async function schedulePoll(
  tx: Pick<WriteTx, 'pollableIdentifiers'>,
  parcel: ParcelState,
  ports: SchedulePorts,
  { cadence }: { readonly cadence: CadencePolicy },
): Promise<ParcelState> {
  // Only the next poll of a parcel that the carrier does not know depends on its identifiers.
  const nowMs = ports.clock.now()
  const isPollable = parcel.stopped !== 'unknown' || (await tx.pollableIdentifiers(parcel.parcelId, nowMs)).length > 0
  return scheduleNextPoll(parcel, () => isPollable, ports.model(), cadence, nowMs)
}

/** Schedules the next polls of several parcels, with as many round trips as for one. */
export async function schedulePolls(
  tx: Pick<WriteTx, 'pollableParcels'>,
  parcels: readonly ParcelState[],
  ports: SchedulePorts,
  { cadence }: { readonly cadence: CadencePolicy },
): Promise<readonly ParcelState[]> {
  const unknown = parcels.filter(({ stopped }) => stopped === 'unknown').map(({ parcelId }) => parcelId)
  const nowMs = ports.clock.now()
  const pollable = await tx.pollableParcels(unknown, nowMs)
  const model = ports.model()
  return parcels.map((parcel) =>
    scheduleNextPoll(parcel, () => parcel.stopped !== 'unknown' || pollable.has(parcel.parcelId), model, cadence, nowMs),
  )
}

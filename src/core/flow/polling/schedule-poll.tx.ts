import type { ParcelState } from '../../domain/history/parcel-state.ts'
import type { CadenceModel, CadencePolicy } from '../../domain/polling/cadence.ts'
import { scheduleNextPoll } from '../../domain/polling/poll.ts'
import type { Session } from '../../store/engine.ts'
import { pollableFrom } from '../../store/history/parcels.ts'
import type { Part } from '../relay.ts'

export interface SchedulePorts extends Part<'clock', 'now'> {
  /** Returns the current model, by which next polls are scheduled. */
  readonly model: () => CadenceModel
}

/** Schedules the next poll of a parcel. */
export async function schedulePoll(
  tx: Session,
  parcel: ParcelState,
  ports: SchedulePorts,
  { cadence }: { readonly cadence: CadencePolicy },
): Promise<ParcelState> {
  const [scheduled = parcel] = await schedulePolls(tx, [parcel], ports, { cadence })
  return scheduled
}

/** Schedules the next polls of several parcels, with as many round trips to the database as for one parcel. */
export async function schedulePolls(
  tx: Session,
  parcels: readonly ParcelState[],
  ports: SchedulePorts,
  { cadence }: { readonly cadence: CadencePolicy },
): Promise<readonly ParcelState[]> {
  // Identifiers matter only for parcels that the carrier does not know.
  const unknown = parcels.filter(({ stopped }) => stopped === 'unknown').map(({ parcelId }) => parcelId)
  const nowMs = ports.clock.now()
  const fromMs = await pollableFrom(tx, unknown)
  const model = ports.model()
  return parcels.map((parcel) => scheduleNextPoll(parcel, fromMs.get(parcel.parcelId) ?? null, model, cadence, nowMs))
}

import type { ParcelState } from '../../domain/history/parcel-state.ts'
import type { CadenceModel, CadencePolicy } from '../../domain/polling/cadence.ts'
import { planCheck } from '../../domain/polling/next-check.ts'
import type { Clock } from '../ports.ts'
import type { WriteTx } from '../write-store.ts'

export interface PlanPorts {
  readonly clock: Pick<Clock, 'now'>
  /** What holds for every parcel's next check at this time. */
  readonly model: () => CadenceModel
}

/** Sets when the parcel is asked about again. */
export async function schedule(
  tx: WriteTx,
  parcel: ParcelState,
  ports: PlanPorts,
  { cadence }: { readonly cadence: CadencePolicy },
): Promise<ParcelState> {
  // Of others it does not matter.
  const isPollable = parcel.stopped !== 'unknown' || (await tx.pollableIdentifiers(parcel.parcelId, ports.clock.now())).length > 0
  return planCheck(parcel, () => isPollable, ports.model(), cadence)
}

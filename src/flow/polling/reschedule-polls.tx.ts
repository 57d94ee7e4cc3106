import type { RecordRules } from '../../domain/history/record-rules.ts'
import type { DueCursor } from '../../domain/polling/poll.ts'
import type { WriteStore, WriteTx } from '../write-store.ts'
import { type SchedulePorts, schedulePoll } from './schedule-poll.tx.ts'

/** So many in one transaction, and so many transactions a pass of the poller: pushes wait for some milliseconds, and a million takes minutes. */
const PLANNED_AT_ONCE = 256
const TURNS_MAX = 8
const EVER_MS = Number.MAX_SAFE_INTEGER

/**
 * A check is planned when something is heard of its parcel. When pushes cannot be relied on any more, what was planned while they could is too
 * late: then all that is still to come is gone through, soonest first, and planned anew where that brings it forward (DOMAIN 6.1). One call goes
 * on where the last one stopped. What was left by a run that ended is gone through again by the next.
 */
export function createReschedulePolls(
  ports: SchedulePorts & { readonly store: WriteStore },
  options: Pick<RecordRules, 'cadence'>,
): (nowMs: number) => Promise<void> {
  let wasRelied = ports.model().pushHealth !== 'unknown'
  /** Null: there is nothing to go through. */
  let place: DueCursor | null = null

  async function goOn(tx: WriteTx, after: DueCursor): Promise<DueCursor | null> {
    const places = await tx.duePolls({ nowMs: EVER_MS, limit: PLANNED_AT_ONCE, after })
    for (const { parcelId, dueAtMs } of places) {
      const next = await schedulePoll(tx, await tx.loadParcel(parcelId), ports, options)
      if (next.nextPollAtMs !== null && next.nextPollAtMs < dueAtMs) tx.saveParcel(next)
    }
    return places.length < PLANNED_AT_ONCE ? null : (places.at(-1) ?? null)
  }

  return async (nowMs) => {
    const isRelied = ports.model().pushHealth === 'healthy'
    if (isRelied) place = null
    else if (wasRelied) place = { dueAtMs: nowMs, parcelId: EVER_MS }
    wasRelied = isRelied
    for (let turn = 0; turn < TURNS_MAX && place !== null; turn++) {
      const after: DueCursor = place
      place = await ports.store.transaction((tx) => goOn(tx, after))
    }
  }
}

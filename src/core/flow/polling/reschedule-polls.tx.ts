import type { RecordRules } from '../../domain/history/recording.ts'
import type { DueCursor } from '../../domain/polling/poll.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import { type SchedulePorts, schedulePolls } from './schedule-poll.tx.ts'

/**
 * The limits of polls per transaction, and of transactions per pass of the poller, so that pushes wait only for some milliseconds.
 * Rescheduling a million parcels takes minutes.
 */
const PLANNED_AT_ONCE = 256
const TURNS_MAX = 8
const EVER_MS = Number.MAX_SAFE_INTEGER

/**
 * Reschedules polls when pushes become unreliable, because polls that were scheduled while pushes were reliable would come too late. Visits
 * all future polls, the earliest first, and moves those that should come earlier (DOMAIN 6.1). Each call continues where the last one
 * stopped. After a restart it begins again.
 */
export function createReschedulePolls(
  ports: SchedulePorts & { readonly store: Transactions },
  options: Pick<RecordRules, 'cadence'>,
): (nowMs: number) => Promise<void> {
  let wasRelied = ports.model().pushHealth !== 'unknown'
  /** Where to continue; null: there is nothing to visit. */
  let cursor: DueCursor | null = null

  async function rescheduleFrom(tx: WriteTx, after: DueCursor): Promise<DueCursor | null> {
    const due = await tx.duePolls({ nowMs: EVER_MS, limit: PLANNED_AT_ONCE, after })
    const plannedAtMs = new Map(due.map(({ parcelId, dueAtMs }) => [parcelId, dueAtMs]))
    // `findParcels` leaves out parcels that were joined to others or deleted meanwhile.
    const next = await schedulePolls(tx, await tx.findParcels([...plannedAtMs.keys()]), ports, options)
    tx.saveParcels(next.filter(({ parcelId, nextPollAtMs }) => (nextPollAtMs ?? EVER_MS) < (plannedAtMs.get(parcelId) ?? 0)))
    return due.length < PLANNED_AT_ONCE ? null : (due.at(-1) ?? null)
  }

  return async (nowMs) => {
    const isRelied = ports.model().pushHealth === 'healthy'
    if (isRelied) cursor = null
    else if (wasRelied) cursor = { dueAtMs: nowMs, parcelId: EVER_MS }
    wasRelied = isRelied
    for (let turn = 0; turn < TURNS_MAX && cursor !== null; turn++) {
      const after: DueCursor = cursor
      cursor = await ports.store.transaction((tx) => rescheduleFrom(tx, after), { ofRole: 'poller' })
    }
  }
}

import type { ToldBreach } from '../../domain/delivery/feed-entry.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

// What the core does with the breaches of watchdogs: shows them in the feed, and moves or removes them with their parcels. The rest is in
// `insight/watchdogs`.

/** At most this many breaches of a parcel are kept: those that last, and the newest of those that have ended. */
export const BREACHES_MAX = 100

const withIds = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('watchdog_breach')
    .select(['id', 'rule', 'since_ms', 'is_checked', 'told_at_ms', 'ended_at_ms'])
    .where('id', 'in', oneOf(p.ids)),
)
const ofParcels = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('watchdog_breach').selectAll().where('parcel_id', 'in', oneOf(p.ids)).orderBy('parcel_id').orderBy('id'),
)
const moveAll = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf }) =>
  db.updateTable('watchdog_breach').set({ parcel_id: p.into }).where('parcel_id', 'in', oneOf(p.ids)),
)
const removeSome = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('watchdog_breach').where('id', 'in', oneOf(p.ids)),
)
const removeAll = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('watchdog_breach').where('parcel_id', 'in', oneOf(p.ids)),
)
const removeDue = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('watchdog_due').where('parcel_id', 'in', oneOf(p.ids)),
)

/** Loads breaches for events of the feed, by id. */
export async function loadToldBreaches(session: Session, ids: readonly number[]): Promise<ReadonlyMap<number, ToldBreach>> {
  if (ids.length === 0) return new Map()
  const rows = await session.all(withIds, { ids })
  return new Map(
    rows.map(({ id, rule, since_ms: sinceMs, is_checked, told_at_ms: toldAtMs, ended_at_ms: endedAtMs }) => [
      id,
      { rule, sinceMs, checked: is_checked === 1, toldAtMs, endedAtMs },
    ]),
  )
}

export async function loadBreachesOf(session: Session, parcelIds: readonly number[]) {
  return parcelIds.length === 0 ? [] : await session.all(ofParcels, { ids: parcelIds })
}

export function removeBreaches(session: Session, ids: readonly number[]): void {
  if (ids.length > 0) session.enqueueWrite(removeSome, { ids })
}

const keepOpen = statement<{ parcelId: number }>()((db, p) =>
  db
    .insertInto('watchdog_due')
    .values({ parcel_id: p.parcelId, due_at_ms: 0, is_open: 1, ask_at_ms: null })
    .onConflict((conflict) => conflict.column('parcel_id').doUpdateSet({ due_at_ms: 0, is_open: 1, ask_at_ms: null })),
)

/** Gives the parcel of a join the breaches of all parcels, each once. One that lasts goes before one that has ended, and is looked at, also without a rule. */
export async function moveWatched(session: Session, from: readonly number[], into: number): Promise<void> {
  session.enqueueWrite(removeDue, { ids: from })
  const rows = await loadBreachesOf(session, [...from, into])
  if (!rows.some((row) => row.parcel_id !== into)) return
  const kept = new Map<string, (typeof rows)[number]>()
  for (const row of rows) {
    const key = `${row.rule}/${row.since_ms}`
    const other = kept.get(key)
    if (other === undefined || (other.ended_at_ms !== null && row.ended_at_ms === null)) kept.set(key, row)
  }
  const stays = new Set([...kept.values()].toSorted(lastingFirst).slice(0, BREACHES_MAX))
  if ([...stays].some((row) => row.ended_at_ms === null)) session.enqueueWrite(keepOpen, { parcelId: into })
  removeBreaches(
    session,
    rows.filter((row) => !stays.has(row)).map(({ id }) => id),
  )
  session.enqueueWrite(moveAll, { ids: from, into })
}

interface Ending {
  readonly id: number
  readonly ended_at_ms: number | null
}

function lastingFirst(one: Ending, other: Ending): number {
  return Number(one.ended_at_ms !== null) - Number(other.ended_at_ms !== null) || other.id - one.id
}

export function removeWatched(session: Session, parcelIds: readonly number[]): void {
  session.enqueueWrite(removeDue, { ids: parcelIds })
  session.enqueueWrite(removeAll, { ids: parcelIds })
}

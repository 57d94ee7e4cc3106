import type { Kysely } from 'kysely'
import type { FilteredCount, ParcelFilter, StoreCounts } from '../../domain/admin/parcel-list.ts'
import type { Session } from '../engine.ts'
import { countQuarantined } from '../ingest/inbox.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'
import { AFTER_ALL } from './parcel-lists.ts'

/** Each reads at most `limit` rows of an index or of the table, and groups what it read by what filters compare. */
const amongAll = statement<{ limit: number }>()((db, p) => grouped(db, seenIn(db).where('id', '>', 0).limit(p.limit)))
const amongStopped = statement<{ reason: string; limit: number }>()((db, p) =>
  grouped(db, seenIn(db).where('next_poll_at_ms', 'is', null).where('stopped', '=', p.reason).limit(p.limit)),
)
const amongNamed = statement<{ from: string; to: string; limit: number }>()((db, p) =>
  db
    .selectFrom(
      db
        .selectFrom(
          db
            .selectFrom('identifier')
            .select(['value', 'parcel_id'])
            .where('value', '>=', p.from)
            .where('value', '<', p.to)
            .orderBy('value')
            .limit(p.limit)
            .as('named'),
        )
        .select((row) => ['parcel_id', row.fn.countAll<number>().as('looked')])
        .groupBy('parcel_id')
        .as('seen'),
    )
    .innerJoin('parcel', 'parcel.id', 'seen.parcel_id')
    .select((row) => [
      'parcel.latest_status',
      'parcel.stopped',
      row.fn.countAll<number>().as('parcels'),
      row.fn.count<number>('parcel.next_poll_at_ms').as('polled'),
      row.fn.sum<number>('seen.looked').as('looked'),
    ])
    .groupBy(['parcel.latest_status', 'parcel.stopped']),
)

function seenIn(db: Kysely<Tables>) {
  return db.selectFrom('parcel').select(['latest_status', 'stopped', 'next_poll_at_ms']).orderBy('id', 'desc')
}

function grouped(db: Kysely<Tables>, seen: ReturnType<typeof seenIn>) {
  return db
    .selectFrom(seen.as('seen'))
    .select((row) => [
      'latest_status',
      'stopped',
      row.fn.countAll<number>().as('parcels'),
      row.fn.count<number>('next_poll_at_ms').as('polled'),
      row.fn.countAll<number>().as('looked'),
    ])
    .groupBy(['latest_status', 'stopped'])
}

/** Counts the parcels of a list. Reads at most `max` rows and one, whatever the filters match. */
export async function countParcels(session: Session, { prefix, status, stopped }: ParcelFilter, max: number): Promise<FilteredCount> {
  const limit = max + 1
  const groups = await (prefix !== null
    ? session.all(amongNamed, { from: prefix, to: prefix + AFTER_ALL, limit })
    : stopped !== null
      ? session.all(amongStopped, { reason: stopped, limit })
      : session.all(amongAll, { limit }))
  const listed = groups.map((group) => {
    if (status !== null && group.latest_status !== status) return 0
    if (stopped !== null) return group.stopped === stopped ? group.parcels - group.polled : 0
    // Without a prefix, a list holds no parcel that was never watched.
    return prefix === null && group.stopped === null ? group.polled : group.parcels
  })
  const looked = groups.reduce((sum, group) => sum + Number(group.looked), 0)
  const count = listed.reduce((sum, parcels) => sum + parcels, 0)
  return { count: Math.min(count, max), more: looked > max }
}

const allParcels = statement()((db) => db.selectFrom('parcel').select((row) => row.fn.countAll<number>().as('count')))
const watched = statement()((db) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', 'is not', null),
)
const overdue = statement<{ nowMs: number }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', '<=', p.nowMs),
)

const unknown = statement<{ reason: string }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', 'is', null)
    .where('stopped', '=', p.reason),
)

export async function countStore(session: Session, nowMs: number): Promise<StoreCounts> {
  const [all] = await session.all(allParcels, {})
  const [polled] = await session.all(watched, {})
  const [late] = await session.all(overdue, { nowMs })
  const [stopped] = await session.all(unknown, { reason: 'unknown' })
  return {
    parcels: all?.count ?? 0,
    watched: polled?.count ?? 0,
    overdue: late?.count ?? 0,
    unknown: stopped?.count ?? 0,
    quarantined: await countQuarantined(session),
  }
}

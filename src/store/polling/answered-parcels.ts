import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import type { Session } from '../engine.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'

/** So many parcels are looked at. Parcels whose polls fail are polled again sooner, so those with the latest next polls are rarely among them. */
const LOOKED_AT = 512
const FOUND_MAX = 64

/** Finds the identifiers of those of these parcels whose last poll was answered. */
const answeredOf = (db: Kysely<Tables>, parcels: SelectQueryBuilder<Tables, 'parcel', object>) =>
  db
    .selectFrom(parcels.select(['id', 'failures', 'checked_at_ms']).limit(sql.lit(LOOKED_AT)).as('looked'))
    .innerJoin('identifier', 'identifier.parcel_id', 'looked.id')
    .select(['looked.id', 'identifier.value'])
    .where('looked.failures', '=', 0)
    .where('looked.checked_at_ms', 'is not', null)
    .where('identifier.refused_at_ms', 'is', null)
    .orderBy('identifier.is_tracking_id')
    .limit(sql.lit(FOUND_MAX))

const answered = statement()((db) =>
  answeredOf(db, db.selectFrom('parcel').where('next_poll_at_ms', 'is not', null).orderBy('next_poll_at_ms', 'desc')),
)

const ended = statement<{ stopped: string }>()((db, p) =>
  answeredOf(db, db.selectFrom('parcel').where('next_poll_at_ms', 'is', null).where('stopped', '=', p.stopped).orderBy('id', 'desc')),
)

/**
 * Lists some parcels whose last poll was answered, each by the identifier by which it is polled: watched parcels or, if there are none, parcels
 * that are not polled any more.
 */
export async function findAnsweredParcels(session: Session): Promise<readonly string[]> {
  const watched = await session.all(answered, {})
  if (watched.length > 0) return firstOfEach(watched)
  const [stale, delivered] = [await session.all(ended, { stopped: 'stale' }), await session.all(ended, { stopped: 'delivered' })]
  return firstOfEach([...stale, ...delivered])
}

/** Keeps the tracking number of each parcel, which comes first. The carrier may answer to no other identifier. */
function firstOfEach(rows: readonly { readonly id: number; readonly value: string }[]): readonly string[] {
  const byParcel = new Map(rows.toReversed().map(({ id, value }) => [id, value]))
  return [...byParcel.values()]
}

import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import type { Session } from '../engine.ts'
import { loadIdentifiersOf } from '../history/parcels.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'

/** So many parcels are looked at. Parcels whose polls fail are polled again sooner, so those with the latest next polls are rarely among them. */
const LOOKED_AT = 512
const FOUND_MAX = 64

/** Those of these parcels whose last poll was answered. */
const answeredOf = (db: Kysely<Tables>, parcels: SelectQueryBuilder<Tables, 'parcel', object>) =>
  db
    .selectFrom(parcels.select(['id', 'failures', 'checked_at_ms']).limit(sql.lit(LOOKED_AT)).as('looked'))
    .select('id')
    .where('failures', '=', 0)
    .where('checked_at_ms', 'is not', null)
    .limit(sql.lit(FOUND_MAX))

const answered = statement()((db) =>
  answeredOf(db, db.selectFrom('parcel').where('next_poll_at_ms', 'is not', null).orderBy('next_poll_at_ms', 'desc')),
)

const ended = statement<{ stopped: string }>()((db, p) =>
  answeredOf(db, db.selectFrom('parcel').where('next_poll_at_ms', 'is', null).where('stopped', '=', p.stopped).orderBy('id', 'desc')),
)

/** Parcels of which an answer is kept, however their later polls ended. */
const everAnswered = statement()((db) =>
  db
    .selectFrom('answer')
    .select('parcel_id as id')
    .distinct()
    .where('parcel_id', '>', sql.lit(0))
    .orderBy('parcel_id', 'desc')
    .limit(sql.lit(FOUND_MAX)),
)

/**
 * Lists some parcels whose last poll was answered, each by the identifier by which it is polled: watched parcels or, if there are none, parcels
 * that are not polled any more. `orEver`: or else, parcels of which an answer is kept.
 */
export async function findAnsweredParcels(session: Session, { orEver } = { orEver: false }): Promise<readonly string[]> {
  let found = await session.all(answered, {})
  if (found.length === 0)
    found = [...(await session.all(ended, { stopped: 'stale' })), ...(await session.all(ended, { stopped: 'delivered' }))]
  if (found.length === 0 && orEver) found = await session.all(everAnswered, {})
  // The carrier may answer only to the tracking number, which comes first.
  const rows = await loadIdentifiersOf(
    session,
    found.map(({ id }) => id),
  )
  const usable = rows.filter((row) => row.refused_at_ms === null)
  return [...new Map(usable.toReversed().map((row) => [row.parcel_id, row.value])).values()]
}

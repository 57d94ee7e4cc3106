import { type AliasedExpression, type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import type { Session } from '../engine.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'

/** So many parcels are looked at. Parcels whose polls fail are polled again sooner, so those with the latest next polls are rarely among them. */
const LOOKED_AT = 512
const FOUND_MAX = 64

/** Finds the identifiers of these parcels by which they are polled. */
const identifiersOf = (db: Kysely<Tables>, parcels: AliasedExpression<{ id: number }, 'looked'>) =>
  db
    .selectFrom(parcels)
    .innerJoin('identifier', 'identifier.parcel_id', 'looked.id')
    .select(['looked.id', 'identifier.value'])
    .where('identifier.refused_at_ms', 'is', null)
    .orderBy('identifier.is_tracking_id')
    .limit(sql.lit(FOUND_MAX))

/** Those of these parcels whose last poll was answered. */
const answeredOf = (db: Kysely<Tables>, parcels: SelectQueryBuilder<Tables, 'parcel', object>) =>
  identifiersOf(
    db,
    db
      .selectFrom(parcels.select(['id', 'failures', 'checked_at_ms']).limit(sql.lit(LOOKED_AT)).as('looked'))
      .select('id')
      .where('failures', '=', 0)
      .where('checked_at_ms', 'is not', null)
      .as('looked'),
  )

const answered = statement()((db) =>
  answeredOf(db, db.selectFrom('parcel').where('next_poll_at_ms', 'is not', null).orderBy('next_poll_at_ms', 'desc')),
)

const ended = statement<{ stopped: string }>()((db, p) =>
  answeredOf(db, db.selectFrom('parcel').where('next_poll_at_ms', 'is', null).where('stopped', '=', p.stopped).orderBy('id', 'desc')),
)

/** Parcels of which an answer is kept, however their later polls ended. */
const everAnswered = statement()((db) =>
  identifiersOf(
    db,
    db
      .selectFrom('answer')
      .select('parcel_id as id')
      .distinct()
      .where('parcel_id', '>', sql.lit(0))
      .orderBy('parcel_id', 'desc')
      .limit(sql.lit(LOOKED_AT))
      .as('looked'),
  ),
)

/**
 * Lists some parcels whose last poll was answered, each by the identifier by which it is polled: watched parcels or, if there are none, parcels
 * that are not polled any more. `orEver`: or else, parcels of which an answer is kept.
 */
export async function findAnsweredParcels(session: Session, { orEver } = { orEver: false }): Promise<readonly string[]> {
  const watched = await session.all(answered, {})
  if (watched.length > 0) return firstOfEach(watched)
  const [stale, delivered] = [await session.all(ended, { stopped: 'stale' }), await session.all(ended, { stopped: 'delivered' })]
  const found = [...stale, ...delivered]
  return firstOfEach(found.length > 0 || !orEver ? found : await session.all(everAnswered, {}))
}

/** Keeps the tracking number of each parcel, which comes first. The carrier may answer to no other identifier. */
function firstOfEach(rows: readonly { readonly id: number; readonly value: string }[]): readonly string[] {
  const byParcel = new Map(rows.toReversed().map(({ id, value }) => [id, value]))
  return [...byParcel.values()]
}

import { sql } from 'kysely'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

/** So many parcels are looked at. Parcels whose polls fail are polled again sooner, so those with the latest next polls are rarely among them. */
const LOOKED_AT = 512
const FOUND_MAX = 64

const answered = statement()((db) =>
  db
    .selectFrom(
      db
        .selectFrom('parcel')
        .select('id')
        .where('next_poll_at_ms', 'is not', null)
        .orderBy('next_poll_at_ms', 'desc')
        .limit(sql.lit(LOOKED_AT))
        .as('late'),
    )
    .innerJoin('parcel', 'parcel.id', 'late.id')
    .innerJoin('identifier', 'identifier.parcel_id', 'parcel.id')
    .select('identifier.value')
    .where('parcel.failures', '=', 0)
    .where('parcel.checked_at_ms', 'is not', null)
    .where('identifier.refused_at_ms', 'is', null)
    .orderBy('identifier.is_tracking_id')
    .limit(sql.lit(FOUND_MAX)),
)

/** Lists identifiers of some watched parcels whose last poll was answered, tracking numbers first. */
export async function findAnsweredParcels(session: Session): Promise<readonly string[]> {
  return (await session.all(answered, {})).map(({ value }) => value)
}

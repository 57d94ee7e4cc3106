import { type Expression, sql } from 'kysely'

/** The kind of a join is written into the SQL. The planner uses a partial index only if the query repeats its condition. */
function nextJoin(parcelId: Expression<number>, after: Expression<number>) {
  return sql<number | null>`(
    select following.sequence from feed as following
    where following.kind = 4 and following.entry = ${parcelId} and following.sequence > ${after} order by following.sequence limit 1
  )`
}

/**
 * An expression for the parcel that now holds the history of `parcelId`, after any number of joins. Only joins after `sequence` count,
 * because early versions reused parcel ids.
 */
export function survivorOf(parcelId: Expression<number>, sequence: Expression<number>) {
  return sql<number>`(
    with recursive holder (id, join_at) as (
      select ${parcelId}, ${nextJoin(parcelId, sequence)}
      union all
      select joined.parcel_id, ${nextJoin(sql.ref('joined.parcel_id'), sql.ref('joined.sequence'))}
      from holder inner join feed as joined on joined.sequence = holder.join_at
    ) select id from holder where join_at is null
  )`
}

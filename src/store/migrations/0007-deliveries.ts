import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * What has not ended is found by its parcel, so that of each parcel the earliest goes first, replays included (DOMAIN 7.3). Of what waits
 * only that one is due: what a replay let overtake it waits again.
 */
export const deliveries: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex('delivery_waiting')
      .on('delivery')
      .columns(['endpoint_id', 'parcel_id', 'sequence'])
      .where(sql.ref('state'), '<', sql.lit(2))
      .execute()
    const earlier = sql`exists (select 1 from delivery as earlier where earlier.endpoint_id = delivery.endpoint_id
      and earlier.parcel_id = delivery.parcel_id and earlier.sequence < delivery.sequence and earlier.state < 2)`
    await sql`update delivery set state = 0 where state < 2 and state = 1 and ${earlier}`.execute(db)
    await sql`update delivery set state = 1 where state < 2 and state = 0 and not ${earlier}`.execute(db)
  },
}

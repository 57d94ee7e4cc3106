import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Adds an index of waiting deliveries by parcel, so that each parcel's earliest goes first, replays included (DOMAIN 7.3), and makes only that
 * one due. Adds indexes of ended deliveries by sequence and by time of queueing, so that a replay reads nothing else. Adds jobs, which
 * continue after a restart.
 */
export const deliveries: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex('delivery_waiting')
      .on('delivery')
      .columns(['endpoint_id', 'parcel_id', 'sequence', 'state', 'queued_at_ms'])
      .where(sql.ref('state'), '<', sql.lit(2))
      .execute()
    for (const [name, column] of [
      ['delivery_ended', 'sequence'],
      ['delivery_ended_by_time', 'queued_at_ms'],
    ] as const) {
      await db.schema
        .createIndex(name)
        .on('delivery')
        .columns(['endpoint_id', 'state', column])
        .where(sql.ref('state'), '>=', sql.lit(2))
        .execute()
    }
    await db.schema
      .createTable('job')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('task', 'text', (column) => column.notNull())
      .addColumn('started_by', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('place', 'text')
      .addColumn('done', 'integer', (column) => column.notNull())
      .addColumn('failure', 'text')
      .addColumn('created_at_ms', 'integer', (column) => column.notNull())
      .addColumn('started_at_ms', 'integer')
      .addColumn('ended_at_ms', 'integer')
      .execute()
    await db.schema.createIndex('job_unended').on('job').column('id').where(sql.ref('ended_at_ms'), 'is', null).execute()
    const earlier = sql`exists (select 1 from delivery as earlier where earlier.endpoint_id = delivery.endpoint_id
      and earlier.parcel_id = delivery.parcel_id and earlier.sequence < delivery.sequence and earlier.state < 2)`
    await sql`update delivery set state = 0 where state < 2 and state = 1 and ${earlier}`.execute(db)
    await sql`update delivery set state = 1 where state < 2 and state = 0 and not ${earlier}`.execute(db)
  },
}

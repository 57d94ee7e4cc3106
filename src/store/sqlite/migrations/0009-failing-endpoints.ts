import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

interface DeliveryTables {
  readonly delivery: { readonly state: number; readonly attempts: number; readonly round: number }
}

const BEHIND = 0
const DUE = 1
const FIRST_ROUND = 1

/**
 * Adds rounds, probes, and how long an endpoint was observed to fail. The count starts at zero, because the existing columns do not show it.
 */
export const failingEndpoints: Migration = {
  async up(db: Kysely<DeliveryTables>): Promise<void> {
    await db.schema
      .alterTable('endpoint')
      .addColumn('failed_for_ms', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()
    await db.schema
      .alterTable('endpoint')
      .addColumn('failed_parcels', 'text', (column) => column.notNull().defaultTo('[]'))
      .execute()
    await db.schema.alterTable('endpoint').addColumn('probe_at_ms', 'integer').execute()
    await db.schema
      .alterTable('endpoint')
      .addColumn('probes_failed', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()
    await db.schema
      .alterTable('endpoint')
      .addColumn('round', 'integer', (column) => column.notNull().defaultTo(FIRST_ROUND))
      .execute()
    await db.schema
      .alterTable('endpoint')
      .addColumn('woken_at_ms', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()

    await db.schema
      .alterTable('delivery')
      .addColumn('round', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()
    await db.schema
      .alterTable('delivery')
      .addColumn('spared', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()
    await db.schema.dropIndex('delivery_due').execute()
    await db.updateTable('delivery').set({ round: FIRST_ROUND }).where('state', 'in', [BEHIND, DUE]).where('attempts', '>', 0).execute()
    await db.schema
      .createIndex('delivery_due')
      .on('delivery')
      .columns(['endpoint_id', 'round', 'next_attempt_at_ms'])
      .where(sql.ref('state'), '=', sql.lit(DUE))
      .execute()
  },
}

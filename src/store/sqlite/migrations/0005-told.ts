import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Stores with each sighting which subscribers were sent it, so that neither a later join nor pruning the feed changes it (DOMAIN 6.6). For old
 * sightings it reads this from the feed; those whose events were pruned count as sent to all.
 */
export const told: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('sighting')
      .addColumn('told', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()
    await db.schema
      .alterTable('feed')
      .addColumn('told_before', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()
    await db.schema.alterTable('endpoint').addColumn('backfill_from', 'integer').execute()
    await db.schema.alterTable('endpoint').addColumn('backfill_to', 'integer').execute()

    // A second event of a sighting is the push after its backfill (kind 1), or the result of a split.
    await sql`
      UPDATE sighting SET told = CASE
        WHEN sequence <= coalesce((SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM setting WHERE name = 'feed-pruned-to'), 0) THEN 1
        ELSE coalesce(
          (SELECT max(CASE WHEN carries = -1 THEN -sequence ELSE 1 END) FROM feed
            WHERE feed.entry = sighting.sequence AND carries IS NOT NULL AND kind != 0),
          (SELECT CASE WHEN carries = -1 THEN -sequence ELSE 1 END FROM feed
            WHERE feed.sequence = sighting.sequence AND kind = 0 AND carries IS NOT NULL),
          0)
      END`.execute(db)
    await sql`UPDATE feed SET told_before = -entry WHERE carries IS NOT NULL AND kind = 1`.execute(db)
    await sql`UPDATE endpoint SET backfill_from = 0 WHERE json_extract(settings, '$.backfill')`.execute(db)
    // No query looks for a sighting's second event any more.
    await db.schema.dropIndex('feed_carried_later').execute()
  },
}

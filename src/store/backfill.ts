import type { Migration } from 'kysely/migration'

/** How many rows one batch of a backfill fills: a fraction of a second on either engine. */
export const BACKFILL_ROWS = 5000

/**
 * Fills what a step of the schema has added in rows that were there before, at most `rows` of them. Returns how many it filled; 0: all are
 * filled. It runs again and again, also after a restart, so it finds the rows that are left by itself, by an index or a range of ids.
 */
export type Backfill = (db: Parameters<Migration['up']>[0], rows: number) => Promise<number>

import type { Migration } from 'kysely/migration'

/** How many rows one batch of a backfill fills: a fraction of a second on either engine. */
export const BACKFILL_ROWS = 5000

/**
 * Fills what a step of the schema has added for the rows that were there before, up to `rows` of them, and returns how many that were; 0: all are filled. It
 * finds by itself which rows are left, by an index or a range of ids, since it runs again and again, also after a restart.
 */
export type Backfill = (db: Parameters<Migration['up']>[0], rows: number) => Promise<number>

import type { Migration } from 'kysely/migration'

/** How many rows one batch of a backfill fills: a fraction of a second on either engine. */
export const BACKFILL_ROWS = 5000

/**
 * Fills what a step of the schema has added, in at most `rows` of the rows that existed before. Returns how many rows it filled; 0: all are
 * filled. It is called until all are filled, also after a restart, so it must find the rows that are left, by an index or a range of ids.
 */
export type Backfill = (db: Parameters<Migration['up']>[0], rows: number) => Promise<number>

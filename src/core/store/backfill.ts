import type { Migration } from 'kysely/migration'

/** How many rows one batch of a backfill fills. This takes a fraction of a second on either engine. */
export const BACKFILL_ROWS = 5000

/**
 * Fills what a schema step has added, such as a column, in at most `rows` of the rows that existed before. Returns how many rows it filled; 0:
 * none was left. It is called until it returns 0, also after a restart. So it must find the unfilled rows in the database, and needs an index or
 * a range of ids to find them quickly.
 */
export type Backfill = (db: Parameters<Migration['up']>[0], rows: number) => Promise<number>

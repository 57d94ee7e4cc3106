import { sql } from 'kysely'

/** The type of every text: compared by its bytes, as SQLite does, whatever the locale of the database. */
export const text = sql`text collate "C"`

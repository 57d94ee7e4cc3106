import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const lastingOrder: Migration = {
  async up(db) {
    await sql.raw('alter table answer add column listed bytea').execute(db)
  },
}

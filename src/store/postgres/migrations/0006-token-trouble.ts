import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import { text } from './text.ts'

/** Why the last request for a token brought none, so that the replicas that did not make it do not guess. */
export const tokenTrouble: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('carrier_token').addColumn('trouble', text).execute()
  },
}

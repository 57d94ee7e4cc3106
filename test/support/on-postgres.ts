import { createDatabase } from './postgres-database.ts'
import type { Sections } from './relay.ts'

/** The sections of a config that keep a store on PostgreSQL; in a database of the test's own unless it names another. */
export async function onPostgres(url?: string): Promise<Sections> {
  return {
    store: url ?? (await createDatabase('nothing')).url,
    secrets: { atRestKeys: [Buffer.alloc(32, 'at rest').toString('base64')] },
  }
}

import { createDatabase } from '../store/postgres-database.ts'
import type { Sections } from './relay.ts'

/** Returns config sections for a store on PostgreSQL, in a new database unless `url` names one. */
export async function onPostgres(url?: string): Promise<Sections> {
  return {
    store: url ?? (await createDatabase('nothing')).url,
    secrets: { atRestKeys: [Buffer.alloc(32, 'at rest').toString('base64')] },
  }
}

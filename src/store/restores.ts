import { parseRestores, type RestoreRecord } from '../domain/admin/restore.ts'
import type { Session } from './engine.ts'
import { loadSetting } from './settings.ts'

/** The setting with the restores of the store. */
export const RESTORES = 'restores'

/** Lists the restores of the store, the oldest first. */
export async function listRestores(session: Session): Promise<readonly RestoreRecord[]> {
  const kept = await loadSetting(session, RESTORES)
  return kept === null ? [] : parseRestores(Buffer.from(kept).toString())
}

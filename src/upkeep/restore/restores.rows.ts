import { parseRestores, type RestoreRecord } from '../../core/domain/admin/restore.ts'
import type { Session } from '../../core/store/engine.ts'
import { loadSetting } from '../../core/store/settings.ts'

/** The setting with the restores of the store. */
export const RESTORES = 'restores'

/** Ends all tokens and sessions, because the keys in a backup may have been replaced since, to end tokens. The relay makes a new key. */
export const DROP_TOKEN_KEYS = "delete from setting where name like 'token-key%'"

/**
 * Deletes the counts of quarantined pushes that operators had not been notified of yet. Nearly always they were within seconds, and the pushes may
 * be erased since. Those that are still in quarantine are counted in the overview.
 */
export const DROP_UNTOLD = 'delete from quarantine_count'

/** Lists the restores of the store, the oldest first. */
export async function listRestores(session: Session): Promise<readonly RestoreRecord[]> {
  const kept = await loadSetting(session, RESTORES)
  return kept === null ? [] : parseRestores(Buffer.from(kept).toString())
}

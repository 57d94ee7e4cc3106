import type { Session } from '../../core/store/engine.ts'
import { loadSetting } from '../../core/store/settings.ts'
import { type LeftStore, parseLeftStores } from './store-move.rules.ts'

export const LEFT_STORES = 'left-stores'

/** Lists the stores that moves have left behind, the oldest first. */
export async function listLeftStores(session: Session): Promise<readonly LeftStore[]> {
  const kept = await loadSetting(session, LEFT_STORES)
  return kept === null ? [] : parseLeftStores(Buffer.from(kept).toString())
}

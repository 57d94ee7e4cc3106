import type { WriteSide } from '../../core/flow/write-side.ts'
import type { Transactions } from '../../core/store/write-store.ts'
import { listRefused, removeRefused, saveRefused } from './refused-pushes.rows.ts'
import { staleRefused } from './refused-pushes.rules.ts'

/** Stores the counts of refused pushes, so that they outlast a restart and every replica shows all of them. */
export function createSaveRefused(store: Transactions): Pick<WriteSide, 'saveRefused'> {
  return {
    saveRefused: ({ spells, nowMs }) =>
      store.transaction(async (tx) => {
        for (const spell of staleRefused(await listRefused(tx), nowMs)) removeRefused(tx, spell)
        for (const spell of spells) saveRefused(tx, spell)
      }),
  }
}

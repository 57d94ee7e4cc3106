import { staleRefused } from '../../core/domain/ingest/refused-pushes.ts'
import type { WriteSide } from '../../core/flow/write-side.ts'
import type { Transactions } from '../../core/store/write-store.ts'
import { addRefusal, listRefused, removeRefused, saveRefused } from './refusals.rows.ts'

/** Stores the explanations and counts of refused pushes, so that they outlast a restart and every replica shows all of them. */
export function createKeepRefusal(store: Transactions): Pick<WriteSide, 'keepRefusal' | 'saveRefused'> {
  return {
    keepRefusal: (refusal) => store.transaction(async (tx) => addRefusal(tx, refusal)),
    saveRefused: ({ spells, nowMs }) =>
      store.transaction(async (tx) => {
        for (const spell of staleRefused(await listRefused(tx), nowMs)) removeRefused(tx, spell)
        for (const spell of spells) saveRefused(tx, spell)
      }),
  }
}

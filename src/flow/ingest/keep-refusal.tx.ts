import { staleRefused } from '../../domain/ingest/refused-pushes.ts'
import { addRefusal } from '../../store/ingest/refusals.ts'
import { listRefused, removeRefused, saveRefused } from '../../store/ingest/refused-pushes.ts'
import type { Transactions } from '../../store/write-store.ts'
import type { WriteSide } from '../write-side.ts'

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

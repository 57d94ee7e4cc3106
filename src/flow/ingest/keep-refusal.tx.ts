import { staleRefused } from '../../domain/ingest/refused-pushes.ts'
import type { Transactions, WriteTx } from '../../store/write-store.ts'
import type { WriteSide } from '../write-side.ts'

type KeepTx = Pick<WriteTx, 'addRefusal' | 'listRefused' | 'removeRefused' | 'saveRefused'>

/** Stores the explanations and counts of refused pushes, so that they outlast a restart and every replica shows all of them. */
export function createKeepRefusal(store: Transactions<KeepTx>): Pick<WriteSide, 'keepRefusal' | 'saveRefused'> {
  return {
    keepRefusal: (refusal) => store.transaction(async (tx) => tx.addRefusal(refusal)),
    saveRefused: ({ spells, nowMs }) =>
      store.transaction(async (tx) => {
        for (const spell of staleRefused(await tx.listRefused(), nowMs)) tx.removeRefused(spell)
        for (const spell of spells) tx.saveRefused(spell)
      }),
  }
}

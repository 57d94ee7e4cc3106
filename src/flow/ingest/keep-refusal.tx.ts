import { REFUSED_SUBJECTS, staleRefused } from '../../domain/ingest/refused-pushes.ts'
import type { WriteSide } from '../write-side.ts'
import type { Transactions, WriteTx } from '../write-store.ts'

type KeepTx = Pick<WriteTx, 'addRefusal' | 'endTrouble' | 'listTroubles' | 'saveTrouble'>

/** Stores the explanations and counts of refused pushes, so that a restart loses none and every replica shows all. */
export function createKeepRefusal(store: Transactions<KeepTx>): Pick<WriteSide, 'keepRefusal' | 'saveRefused'> {
  return {
    keepRefusal: (refusal) => store.transaction(async (tx) => tx.addRefusal(refusal)),
    saveRefused: ({ spells, nowMs }) =>
      store.transaction(async (tx) => {
        const stale = staleRefused(await tx.listTroubles(REFUSED_SUBJECTS), nowMs)
        await Promise.all(stale.map(({ subject }) => tx.endTrouble(subject)))
        await Promise.all(spells.map((spell) => tx.saveTrouble(spell)))
      }),
  }
}

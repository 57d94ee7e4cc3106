import type { WriteSide } from '../write-side.ts'
import type { Transactions, WriteTx } from '../write-store.ts'

/** Keeps explained refusals, so that a restart loses none and every replica shows all. */
export function createKeepRefusal(store: Transactions<Pick<WriteTx, 'addRefusal'>>): Pick<WriteSide, 'keepRefusal'> {
  return { keepRefusal: (refusal) => store.transaction(async (tx) => tx.addRefusal(refusal)) }
}

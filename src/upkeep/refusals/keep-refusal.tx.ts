import type { WriteSide } from '../../core/flow/write-side.ts'
import type { Transactions } from '../../core/store/write-store.ts'
import { addRefusal } from './refusals.rows.ts'

/** Stores the explanations of refused pushes, so that they outlast a restart and every replica shows all of them. */
export function createKeepRefusal(store: Transactions): Pick<WriteSide, 'keepRefusal'> {
  return { keepRefusal: (refusal) => store.transaction(async (tx) => addRefusal(tx, refusal)) }
}

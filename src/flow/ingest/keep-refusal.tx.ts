import type { WriteSide } from '../write-side.ts'
import type { WriteStore } from '../write-store.ts'

/** Keeps explained refusals, so that a restart loses none and every replica shows all. */
export function createKeepRefusal(store: WriteStore): Pick<WriteSide, 'keepRefusal'> {
  return { keepRefusal: (refusal) => store.transaction(async (tx) => tx.addRefusal(refusal)) }
}

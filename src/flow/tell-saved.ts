import type { WriteStore, WriteTx } from './write-store.ts'

/**
 * The store for what changes parcels apart from observations: whether they are polled, and what is known to be lacking. It tells after each
 * commit which parcels that were, because cached answers about them may no longer be what a question would get.
 */
export function tellSaved(
  store: Pick<WriteStore, 'transaction'>,
  changed: (parcelIds: readonly number[]) => void,
): Pick<WriteStore, 'transaction'> {
  return {
    async transaction(work, kind) {
      let saved = new Set<number>()
      const result = await store.transaction((tx) => {
        // An engine may run the work again from its beginning.
        saved = new Set()
        return work(noting(tx, saved))
      }, kind)
      if (saved.size > 0) changed([...saved])
      return result
    },
  }
}

function noting(tx: WriteTx, saved: Set<number>): WriteTx {
  return {
    ...tx,
    saveParcel(state) {
      saved.add(state.parcelId)
      tx.saveParcel(state)
    },
    saveParcels(states) {
      for (const { parcelId } of states) saved.add(parcelId)
      tx.saveParcels(states)
    },
    async markLanguageAsked(parcelId, language, sequence) {
      saved.add(parcelId)
      await tx.markLanguageAsked(parcelId, language, sequence)
    },
  }
}

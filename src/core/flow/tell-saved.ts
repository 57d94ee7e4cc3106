import type { Transactions, WriteTx } from '../store/write-store.ts'

/**
 * Wraps the store for transactions that change parcels without an observation, for example when an operator unwatches a parcel. After each
 * commit, passes the ids of the changed parcels to `changed`, because cached answers about them may be stale.
 */
export function tellSaved(store: Transactions, changed: (parcelIds: readonly number[]) => void): Transactions {
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

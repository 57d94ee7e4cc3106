import { type Entry, instantsTie, orderHistory } from '../../domain/history/history.ts'
import { presentParcel } from '../../domain/history/parcel-record.ts'
import type { WriteTx } from '../write-store.ts'

/**
 * What an answer shows that is no single entry's: their order, and what is said of the parcel as a whole. Of some of its entries (those of
 * one second) it shows only a part, and still changes whenever the observation of that second changes the whole.
 */
export async function envelopeOf(tx: WriteTx, parcelId: number, entries: readonly Entry[]): Promise<string> {
  const ordered = orderHistory(entries, instantsTie(entries) ? await tx.loadOrder(parcelId) : [])
  const { trackingIds, distributionType, extra } = presentParcel(ordered, await tx.loadAnswers(parcelId), [])
  return JSON.stringify([ordered.map((entry) => entry.sequence), trackingIds, distributionType, extra])
}

/** Puts in the feed that a parcel as a whole is answered otherwise, though no entry of it changed. */
export function appendParcelUpdate(tx: WriteTx, parcelId: number): void {
  const sequence = tx.nextSequence()
  tx.appendFeed({ sequence, kind: 'update', parcelId, entry: sequence, carries: null })
}

import { firstNeeds, namesOf } from '../../domain/history/batch-needs.ts'
import { continueJoins, joinNeeds, startJoins } from '../../domain/history/join-loads.ts'
import type { RecordBatch } from '../../domain/history/record-batch.ts'
import { addLoaded, type BatchNeeds, type StoredSnapshot, startSnapshot } from '../../domain/history/snapshot.ts'
import type { HistoryTx } from './ports.ts'

export type LoadTx = Pick<HistoryTx, 'beginBatch' | 'loadNeeds'>

/** Loads what a batch is likely to need: first the identifiers it names, then their parcels, then the parcels to be joined. */
export async function loadBatch(tx: LoadTx, batch: RecordBatch): Promise<StoredSnapshot> {
  const start = await tx.beginBatch(namesOf(batch.observations), batch.observations.length)
  return await loadNeeds(tx, startSnapshot(start), firstNeeds(batch, start.identifiers), batch.nowMs)
}

/** Adds what a batch needs to its snapshot. */
export async function loadNeeds(tx: LoadTx, snapshot: StoredSnapshot, needs: BatchNeeds, nowMs: number): Promise<StoredSnapshot> {
  let loaded = addLoaded(snapshot, await tx.loadNeeds(needs, nowMs))
  let joins = startJoins(needs.joins, loaded)
  while (joins.length > 0) {
    loaded = addLoaded(loaded, await tx.loadNeeds(joinNeeds(joins, loaded), nowMs))
    const after = continueJoins(joins, loaded)
    joins = after.joins
    loaded = after.snapshot
  }
  return loaded
}

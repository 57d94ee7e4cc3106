import { continueJoins, firstNeeds, joinNeeds, namesOf, startJoins } from '../../domain/history/batch-needs.ts'
import type { Tombstone } from '../../domain/history/erased.ts'
import type { RecordBatch } from '../../domain/history/recording.ts'
import { addLoaded, type BatchNeeds, type StoredSnapshot, startSnapshot } from '../../domain/history/snapshot.ts'
import type { WriteTx } from '../../store/write-store.ts'
import { findTombstones } from '../tombstones.tx.ts'

/**
 * Loads what a batch is likely to need: the identifiers that it names, then their parcels, then the parcels to be joined. `key`: the key of
 * the tombstones; null: nothing was ever erased.
 */
export async function loadBatch(tx: WriteTx, batch: RecordBatch, key: Uint8Array | null): Promise<StoredSnapshot> {
  const names = namesOf(batch.observations)
  // Read the tombstones after the identifiers are locked, so that a parcel that is being erased is found as a parcel or by its tombstones.
  const [start, tombstones] = await Promise.all([
    tx.beginBatch(names, batch.observations.length),
    key === null ? new Map<string, Tombstone>() : findTombstones(tx, key, names),
  ])
  const snapshot = startSnapshot({ ...start, tombstones })
  return await loadNeeds(tx, snapshot, firstNeeds(batch, snapshot))
}

/** Adds what a batch needs to its snapshot. */
export async function loadNeeds(tx: WriteTx, snapshot: StoredSnapshot, needs: BatchNeeds): Promise<StoredSnapshot> {
  let loaded = addLoaded(snapshot, await tx.loadNeeds(needs))
  let joins = startJoins(needs.joins, loaded)
  while (joins.length > 0) {
    loaded = addLoaded(loaded, await tx.loadNeeds(joinNeeds(joins, loaded)))
    const after = continueJoins(joins, loaded)
    joins = after.joins
    loaded = after.snapshot
  }
  return loaded
}

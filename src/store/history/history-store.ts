import type { ChangeSet } from '../../domain/history/change-set.ts'
import type { MarkedTombstone } from '../../domain/history/erased.ts'
import type { IdentifierState, ParcelState, ParcelView } from '../../domain/history/parcel-state.ts'
import type { StoredPush } from '../../domain/history/rebuild/evidence.ts'
import type { ParcelCorrection, StoredParcel } from '../../domain/history/rebuild/rebuild-parcel.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { BatchStart, Loaded, Needs } from '../../domain/history/snapshot.ts'

/** The store as history uses it inside one transaction; see `WriteTx`. */
export interface HistoryTx extends RebuildTx {
  /** Returns the identifiers among `values` that belong to parcels. */
  findIdentifiers(values: readonly string[]): Promise<readonly IdentifierState[]>
  saveIdentifiers(identifiers: readonly IdentifierState[]): void
  /** Adds parcels about which nothing is known yet. */
  createParcels(count: number, nowMs: number): Promise<readonly ParcelState[]>
  /** Returns a parcel's state; null: the parcel was joined to another, or deleted. */
  findParcel(parcelId: number): Promise<ParcelState | null>
  /** Returns the states of the parcels that were neither joined to others nor deleted. */
  findParcels(parcelIds: readonly number[]): Promise<readonly ParcelState[]>
  /** Throws if the parcel does not exist. */
  loadParcel(parcelId: number): Promise<ParcelState>
  saveParcel(state: ParcelState): void
  saveParcels(states: readonly ParcelState[]): void
  /** All sightings of parcels, by parcel. A parcel without sightings may be absent. */
  loadSightings(parcelIds: readonly number[]): Promise<ReadonlyMap<number, readonly KeptSighting[]>>
  /** Saves tombstones. A tombstone replaces an earlier one with the same mark. */
  addTombstones(tombstones: readonly MarkedTombstone[]): void
  /** Begins a batch of `size` observations that name these identifiers. */
  beginBatch(names: readonly string[], size: number): Promise<BatchStart>
  /** Loads parts of a snapshot, on PostgreSQL in one round trip. Locks the parcels whose states it loads until the transaction ends. */
  loadNeeds(needs: Needs): Promise<Loaded>
  /** Writes everything that a batch changes. On PostgreSQL, replaces provisional ids, which begin at `Snapshot.next`, by real ids. */
  applyChanges(changes: ChangeSet): Promise<void>
}

/** How many rows a rebuild has to read for a parcel. */
export interface RebuildableParcel {
  readonly parcelId: number
  readonly pushes: number
  readonly answers: number
}

/** The store as a rebuild uses it inside one transaction. */
export interface RebuildTx {
  /** Parcels with ids above `after`, ascending. */
  listRebuildable(page: { readonly after: number; readonly limit: number }): Promise<readonly RebuildableParcel[]>
  /** Returns the id of the newest parcel; 0: there is none. */
  lastParcelId(): Promise<number>
  /** Loads everything that is stored about these parcels, and locks them until the transaction ends. Leaves out parcels that do not exist. */
  loadStoredParcels(parcelIds: readonly number[]): Promise<readonly StoredParcel[]>
  listStoredPushes(parcelIds: readonly number[]): Promise<readonly StoredPush[]>
  /** A page of a parcel's recorded pushes, in the order of their digests; `after` '': from the first. */
  pagePushes(page: { readonly parcelId: number; readonly after: string; readonly limit: number }): Promise<readonly StoredPush[]>
  /** Deletes the rows that corrections replace, and corrects answers. `applyChanges` writes the new rows, in the same transaction. */
  correctParcels(corrections: readonly ParcelCorrection[]): Promise<void>
}

/** The reads of history; see `ReadSide`. */
export interface HistoryReads {
  /** The parcel with this identifier; null: no parcel has it. */
  findParcel(identifier: string): Promise<ParcelView | null>
  /**
   * Reads a parcel's present version from the store; null: the parcel no longer exists. Absent if only this process writes to the store,
   * because its cache then knows every change.
   */
  readonly parcelVersion?: (parcelId: number) => Promise<number | null>
}

import type { ChangeSet } from '../../domain/history/change-set.ts'
import type { MarkedTombstone } from '../../domain/history/erased.ts'
import type { IdentifierState, ParcelState, ParcelView } from '../../domain/history/parcel-state.ts'
import type { StoredPush } from '../../domain/history/rebuild/evidence.ts'
import type { ParcelCorrection, StoredParcel } from '../../domain/history/rebuild/rebuild-parcel.ts'
import type { BatchReport, Incoming, RecordOutcome } from '../../domain/history/recording.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { BatchStart, Loaded, Needs } from '../../domain/history/snapshot.ts'
import type { FlightEnd } from '../../domain/polling/flight-end.ts'

/** An encoded answer. It is cached until the facts about its parcel change, or the parcel starts or stops being polled. */
export interface CachedAnswer {
  readonly parcelId: number
  /** The parcel's version when the answer was read from the store. */
  readonly version: number
  readonly body: Buffer
  readonly etag: string
  readonly contentLanguage: string
  /** When a push or poll last reported on the parcel. The header `Age` is computed from it whenever the answer is sent. */
  readonly lastSeenAtMs: number | null
}

export interface AnswerCache {
  /** Returns the cached answer to a question; undefined: there is none, or this process has since changed the parcel. */
  get(key: string): CachedAnswer | undefined
  /** Returns the present position in the sequence of commits. Call it before you read the store for an answer. */
  mark(): bigint
  /** Caches an answer that was read after `mark` was taken. */
  set(key: string, answer: CachedAnswer, mark: bigint): void
}

/** Records observations. The writer may run on another thread. */
export interface Recorder {
  /** Resolves when the observation is durable. Throws `storage_unavailable` if its batch could not be committed. */
  submit(incoming: Incoming): Promise<RecordOutcome>
  /** The number of observations that are not committed yet. */
  pending(): number
  /** Resolves when no observation waits and no commit is running. After this call, failed commits are not tried again. */
  drained(): Promise<void>
}

/** The verbs of history that write; see `WriteSide`. */
export interface HistoryWrites {
  /**
   * Records a batch in one transaction. If this resolves, every observation is durable. If it rejects, no observation was recorded. An
   * observation that cannot be recorded is quarantined, and the others are recorded.
   */
  record(batch: readonly Incoming[]): Promise<BatchReport>
}

/** The store as history uses it inside one transaction; see `WriteTx`. */
export interface HistoryTx extends RebuildTx {
  /** Returns the identifiers among `values` that belong to parcels. */
  findIdentifiers(values: readonly string[]): Promise<readonly IdentifierState[]>
  /** Like `findIdentifiers`, but other transactions may change them meanwhile. */
  lookUpIdentifiers(values: readonly string[]): Promise<readonly IdentifierState[]>
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
  /** The tombstones with these marks. A mark is the keyed digest of an erased identifier. */
  findTombstones(marks: readonly string[]): Promise<readonly MarkedTombstone[]>
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

/** The flights of all replicas. A flight is one call to the carrier, for all replicas that ask the same question at that time. */
export interface SharedFlights {
  /**
   * Takes the flight for `leaseMs`. `taken`: the caller holds it and asks the carrier. `held`: another caller holds it; call again later,
   * with `waited` true. `ended`: the flight is over, with this end. If `waited` is false, `ended` is returned only for a flight that ended with
   * `not_found` within the last `notFoundForMs`. A flight is forgotten some seconds after its end, even if `notFoundForMs` is longer.
   */
  take(request: {
    readonly key: string
    readonly leaseMs: number
    readonly waited: boolean
    readonly notFoundForMs: number
  }): Promise<
    | { readonly kind: 'taken'; readonly holder: string }
    | { readonly kind: 'held' }
    | ({ readonly kind: 'ended' } & { readonly end: FlightEnd })
  >
  /** Whether a replica holds the flight. */
  isUnderWay(key: string): Promise<boolean>
  /** Extends the lease of a flight that the caller holds. */
  renew(request: { readonly key: string; readonly holder: string; readonly leaseMs: number }): Promise<void>
  /** Ends the flight. Callers that wait get `end`. */
  end(request: { readonly key: string; readonly holder: string; readonly end: FlightEnd }): Promise<void>
}

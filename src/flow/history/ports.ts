import type { ChangeSet } from '../../domain/history/change-set.ts'
import type { IdentifierState, ParcelState, ParcelView } from '../../domain/history/parcel-state.ts'
import type { RecordBatch } from '../../domain/history/record-batch.ts'
import type { BatchReport, Incoming, RecordOutcome } from '../../domain/history/recording.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { Needs, StoredSnapshot } from '../../domain/history/snapshot.ts'

/** An encoded answer, kept until something is learnt about its parcel. */
export interface CachedAnswer {
  readonly parcelId: number
  readonly body: Buffer
  readonly etag: string
  readonly contentLanguage: string
  /** As of the reading: kept beside the body, so that `Age` goes on counting. */
  readonly lastSeenAtMs: number | null
}

/** Encoded answers by question. */
export interface AnswerCache {
  /** Undefined as well when its parcel has changed since. */
  get(key: string): CachedAnswer | undefined
  /** As of now: to be taken before the store is read for an answer. */
  mark(): bigint
  /** `mark`: what was committed before it is in the answer. */
  set(key: string, answer: CachedAnswer, mark: bigint): void
  /** Every answer about these parcels that was read until now is no longer true. */
  invalidate(parcelIds: readonly number[]): void
}

/** Takes observations to be recorded, whichever thread records them. */
export interface Recorder {
  /** Resolves once the observation is durable. Throws `storage_unavailable` when its batch could not be committed. */
  submit(incoming: Incoming): Promise<RecordOutcome>
  /** How many are not committed yet. */
  pending(): number
  /** Resolves when nothing waits and nothing is being committed. What failed is not tried again from then on. */
  drained(): Promise<void>
}

/** The verbs of history that write; see `WriteSide`. */
export interface HistoryWrites {
  /** One transaction: every observation durable, or (a throw) none. A bad observation is quarantined alone. */
  record(batch: readonly Incoming[]): Promise<BatchReport>
}

/** What history needs of the store inside one transaction; see `WriteTx`. */
export interface HistoryTx {
  /** A number that nothing has, above all that were given. */
  nextSequence(): Promise<number>
  findIdentifiers(values: readonly string[]): Promise<readonly IdentifierState[]>
  saveIdentifier(identifier: IdentifierState): void
  createParcel(nowMs: number): Promise<ParcelState>
  /** Null: there is none, because it was joined to another. */
  findParcel(parcelId: number): Promise<ParcelState | null>
  /** A parcel that must be there. */
  loadParcel(parcelId: number): Promise<ParcelState>
  saveParcel(state: ParcelState): void
  /** The sightings of a parcel within a second since the epoch, or all of them. */
  loadSightings(parcelId: number, second: number | null): Promise<readonly KeptSighting[]>
  /** What the store holds of a batch: in two rounds, what its observations name, then what the parcels that they name hold. */
  loadSnapshot(batch: RecordBatch): Promise<StoredSnapshot>
  /** The same with what only the data showed to be needed. */
  loadNeeds(snapshot: StoredSnapshot, needs: Needs, nowMs: number): Promise<StoredSnapshot>
  /** Writes all that a batch changes. What it numbers from `Snapshot.next` on is given its real numbers. */
  applyChanges(changes: ChangeSet): Promise<void>
}

/** What history reads of the store; see `ReadSide`. */
export interface HistoryReads {
  /** By any of its identifiers; null: unknown. */
  findParcel(identifier: string): Promise<ParcelView | null>
}

import type { Endpoint } from '../delivery/endpoint.ts'
import type { CadenceModel } from '../polling/cadence.ts'
import type { BackfillSpan } from './audience.ts'
import type { KeptAnswer } from './parcel-record.ts'
import type { IdentifierState, ParcelState } from './parcel-state.ts'
import type { KeptSighting } from './sightings.ts'

/** What decides whether an endpoint is sent an event. */
export interface Subscriber {
  readonly endpoint: Endpoint
  /** The last sequence of the feed that was queued for it while it catches up; null: it has caught up. */
  readonly queuedTo: number | null
  /** The sequences over which it received backfill; null: never. */
  readonly backfilled: BackfillSpan | null
}

/** A recorded push whose bytes are kept. */
export interface KeptBody {
  readonly inboxId: number
  readonly body: Uint8Array
}

/** A parcel in the store, as far as it was loaded; null: that part was not loaded. */
export interface KnownParcel {
  readonly state: ParcelState
  /** Its sightings by second since the epoch. */
  readonly seconds: ReadonlyMap<number, readonly KeptSighting[]>
  /** Whether `seconds` holds all of them. */
  readonly whole: boolean
  /** The polled answers that are kept. */
  readonly answers: readonly KeptAnswer[] | null
  /** The sighting ids of the answer that decides the order at equal instants, in its order. */
  readonly order: readonly string[] | null
  /** Whether the carrier may be asked about any of its identifiers now. */
  readonly pollable: boolean | null
  readonly bodies: readonly KeptBody[] | null
}

/**
 * The first numbers that a change set may give. On SQLite they are the first unused ones, and what is given stays, because only one writer
 * gives any. On PostgreSQL they are provisional, above all real ones: the store replaces them when it applies the change set.
 */
export interface NextNumbers {
  readonly parcelId: number
  readonly sequence: number
  readonly inboxId: number
}

/** Everything that the decision of a batch depends on. */
export interface Snapshot {
  readonly next: NextNumbers
  readonly identifiers: ReadonlyMap<string, IdentifierState>
  readonly parcels: ReadonlyMap<number, KnownParcel>
  /** The inbox ids under which the batch's pushes are stored already, by `pushKey`. */
  readonly pushes: ReadonlyMap<string, number>
  /** The digests that were looked up among pushes without a parcel. */
  readonly unrecorded: ReadonlySet<string>
  /** Sets of parcels that together exceed the limit of one, by `joinKey`. */
  readonly overfull: ReadonlySet<string>
  readonly endpoints: readonly Subscriber[]
  /** What is learnt about the carrier. */
  readonly model: CadenceModel
}

/** The part of a snapshot that comes from the store. */
export type StoredSnapshot = Omit<Snapshot, 'model'>

/** The parcel id of pushes that are not recorded: they belong to no parcel, so they are no duplicates once they are recorded. */
export const NO_PARCEL = 0

/** The key of a push in `Snapshot.pushes`. */
export function pushKey(parcelId: number, digest: string): string {
  return `${parcelId}/${digest}`
}

/** The key of a set of parcels in `Snapshot.overfull`; the ids in ascending order. */
export function joinKey(parcelIds: readonly number[]): string {
  return parcelIds.join()
}

/** What a decision needs and only the loaded data shows. Parcels are named by id. */
export interface Needs {
  /** Sightings to load: pairs of a parcel's id and a second since the epoch. */
  readonly seconds: readonly (readonly [number, number])[]
  /** Sets of parcels to load completely, because they are to be joined. */
  readonly joins: readonly (readonly number[])[]
  readonly whole: readonly number[]
  readonly answers: readonly number[]
  readonly orders: readonly number[]
  readonly pollable: readonly number[]
  readonly bodies: readonly number[]
  /** Digests to look up among pushes without a parcel. */
  readonly unrecorded: readonly string[]
}

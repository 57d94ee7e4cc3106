import type { Endpoint } from '../delivery/endpoint.ts'
import type { CadenceModel } from '../polling/cadence.ts'
import type { BackfillSpan } from './audience.ts'
import type { KeptAnswer } from './parcel-record.ts'
import type { IdentifierState, ParcelState } from './parcel-state.ts'
import type { KeptSighting } from './sightings.ts'

/** What decides whether an endpoint is sent an event. */
export interface Subscriber {
  readonly endpoint: Endpoint
  /** Up to which sequence the feed has been queued for it; null: all of it, or all it is owed. */
  readonly queuedTo: number | null
  /** Over which events it was given backfill; null: over none. */
  readonly backfilled: BackfillSpan | null
}

/** A recorded push whose bytes are kept. */
export interface KeptBody {
  readonly inboxId: number
  readonly body: Uint8Array
}

/** A parcel as the store holds it, as far as it was loaded; null: not loaded. */
export interface KnownParcel {
  readonly state: ParcelState
  /** Its sightings by second since the epoch. */
  readonly seconds: ReadonlyMap<number, readonly KeptSighting[]>
  /** Whether `seconds` holds all of them. */
  readonly whole: boolean
  /** What is kept of polled answers. */
  readonly answers: readonly KeptAnswer[] | null
  /** The sighting ids of the answer that decides the order at equal instants, in its order. */
  readonly order: readonly string[] | null
  /** Whether the carrier may be asked for any of its identifiers now. */
  readonly pollable: boolean | null
  readonly bodies: readonly KeptBody[] | null
}

/** The first numbers that nothing has: what a change set numbers from here on is provisional, and after all that is real. */
export interface NextNumbers {
  readonly parcelId: number
  readonly sequence: number
  readonly inboxId: number
}

/** All that deciding a batch looks at. */
export interface Snapshot {
  readonly next: NextNumbers
  readonly identifiers: ReadonlyMap<string, IdentifierState>
  readonly parcels: ReadonlyMap<number, KnownParcel>
  /** The numbers that the batch's pushes are kept under already, by `pushKey`. */
  readonly pushes: ReadonlyMap<string, number>
  /** The digests that were looked for among pushes of no parcel. */
  readonly unrecorded: ReadonlySet<string>
  /** Sets of parcels that hold more than fits into one, by `joinKey`. */
  readonly overfull: ReadonlySet<string>
  readonly endpoints: readonly Subscriber[]
  /** What is learnt of the carrier. */
  readonly model: CadenceModel
}

/** What of it the store holds. */
export type StoredSnapshot = Omit<Snapshot, 'model'>

/** A push that was not recorded belongs to no parcel, so that it is no duplicate when it is. */
export const NO_PARCEL = 0

export function pushKey(parcelId: number, digest: string): string {
  return `${parcelId}/${digest}`
}

export function joinKey(parcelIds: readonly number[]): string {
  return parcelIds.join()
}

/** What only the data shows to be needed: parcels by their numbers. */
export interface Needs {
  /** Seconds of parcels, as [parcel, second]. */
  readonly seconds: readonly (readonly [number, number])[]
  /** Sets of parcels that are to be loaded whole, to be joined. */
  readonly joins: readonly (readonly number[])[]
  readonly whole: readonly number[]
  readonly answers: readonly number[]
  readonly orders: readonly number[]
  readonly pollable: readonly number[]
  readonly bodies: readonly number[]
  /** Digests to be looked for among pushes of no parcel. */
  readonly unrecorded: readonly string[]
}

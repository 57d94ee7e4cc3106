import type { Endpoint } from '../delivery/endpoint-state.ts'
import type { CadenceModel } from '../polling/cadence.ts'
import type { Receiver } from './audience.ts'
import type { Tombstones } from './erased.ts'
import type { KeptContext } from './order-context.ts'
import type { IdentifierState, ParcelState } from './parcel-state.ts'
import type { KeptAnswer } from './pull-response.ts'
import type { KeptSighting } from './sightings.ts'

/** An endpoint, with the data that decides whether it is sent an event. */
export interface Subscriber extends Receiver {
  readonly endpoint: Endpoint
  /** While it catches up, the last sequence of the feed that was queued for it; null: it has caught up. */
  readonly queuedTo: number | null
}

/** A recorded push whose bytes are kept. */
export interface KeptBody {
  readonly inboxId: number
  readonly body: Uint8Array
}

/** A stored parcel, as far as it was loaded. A member that is null was not loaded. */
export interface KnownParcel {
  readonly state: ParcelState
  /** Its loaded sightings, by `secondOf` their instant. */
  readonly seconds: ReadonlyMap<number, readonly KeptSighting[]>
  /** Whether `seconds` contains all sightings of the parcel. */
  readonly whole: boolean
  readonly answers: readonly KeptAnswer[] | null
  /** The `listedId` of each sighting of one poll answer, in its order. It decides the order of entries at equal instants. */
  readonly order: readonly string[] | null
  readonly bodies: readonly KeptBody[] | null
  /** What is said of its order; null: nothing, or no endpoint filters by it. */
  readonly context: KeptContext | null
}

/**
 * The first ids and sequences that a change set may use. On SQLite they are the first unused numbers, because there is only one writer. On
 * PostgreSQL they are provisional numbers above all real ones, and the store replaces them when it applies the change set.
 */
export interface NextNumbers {
  readonly parcelId: number
  readonly sequence: number
  readonly inboxId: number
}

/** All data that `decide` needs to decide a batch. */
export interface Snapshot {
  readonly next: NextNumbers
  readonly identifiers: ReadonlyMap<string, IdentifierState>
  readonly parcels: ReadonlyMap<number, KnownParcel>
  /** The inbox ids of the pushes of the batch that are already stored, by `pushKey`. */
  readonly pushes: ReadonlyMap<string, number>
  /** The digests that were looked up under `NO_PARCEL`. The pushes that were found are in `pushes`. */
  readonly unrecorded: ReadonlySet<string>
  /** The sets of parcels that cannot be joined, because together they have too many entries, by `joinKey`. */
  readonly overfull: ReadonlySet<string>
  readonly endpoints: readonly Subscriber[]
  /** The tombstones of the identifiers that the observations name. */
  readonly tombstones: Tombstones
  readonly model: CadenceModel
}

/** The part of a snapshot that comes from the store. */
export type StoredSnapshot = Omit<Snapshot, 'model'>

/** The part of a snapshot that is loaded first for every batch. */
export type BatchStart = Pick<Snapshot, 'next' | 'identifiers' | 'endpoints'>

/**
 * The parcel id under which unrecorded pushes are stored. Duplicates are searched within a parcel. So an unrecorded
 * push is no duplicate of itself when it is recorded later.
 */
export const NO_PARCEL = 0

/** Returns the key of a push in `Snapshot.pushes`. */
export function pushKey(parcelId: number, digest: string): string {
  return `${parcelId}/${digest}`
}

/** Returns the key of a set of parcels in `Snapshot.overfull`. The ids must be in ascending order. */
export function joinKey(parcelIds: readonly number[]): string {
  return parcelIds.join()
}

/** The parts of a snapshot that a database engine loads together. Plain numbers are ids of parcels. */
export interface Needs {
  /** The parcels whose states are needed. The other parts of a parcel may be loaded later. */
  readonly parcels: readonly number[]
  readonly pushes: readonly { readonly parcelId: number; readonly digest: string }[]
  /** The seconds whose sightings are needed. Each second of a parcel occurs once. */
  readonly seconds: readonly SecondNeed[]
  /** The parcels whose sightings are all needed. */
  readonly whole: readonly number[]
  readonly answers: readonly number[]
  readonly orders: readonly number[]
  readonly bodies: readonly number[]
  /** The parcels of which it is needed what is said of their orders. */
  readonly contexts: readonly number[]
}

export interface SecondNeed {
  readonly parcelId: number
  /** See `secondOf`. */
  readonly second: number
  /** The digests of the pushes that need this second. */
  readonly digests: readonly string[]
}

export interface BatchNeeds extends Needs {
  /** Sets of parcels to load completely, because they are to be joined (`startJoins`). The ids are in ascending order. */
  readonly joins: readonly (readonly number[])[]
}

/** The data that a database engine has loaded. If something in `needs` is in no other member, the store does not have it. */
export interface Loaded {
  /** The needs that the engine has looked up. These may be fewer than requested (`certainNeeds`). */
  readonly needs: Needs
  readonly parcels: readonly ParcelState[]
  /** The inbox ids of stored pushes, by `pushKey`. */
  readonly pushes: ReadonlyMap<string, number>
  /** The sightings of the needed seconds, by the id of the parcel. */
  readonly seconds: ReadonlyMap<number, readonly KeptSighting[]>
  /** All sightings of parcels, by the id of the parcel. */
  readonly whole: ReadonlyMap<number, readonly KeptSighting[]>
  readonly answers: ReadonlyMap<number, readonly KeptAnswer[]>
  readonly orders: ReadonlyMap<number, readonly string[]>
  readonly bodies: ReadonlyMap<number, readonly KeptBody[]>
  readonly contexts: ReadonlyMap<number, KeptContext>
}

const NOTHING_NEEDED: Needs = { parcels: [], pushes: [], seconds: [], whole: [], answers: [], orders: [], bodies: [], contexts: [] }

export function onlyNeeds(needs: Partial<Needs>): Needs {
  return { ...NOTHING_NEEDED, ...needs }
}

export function startSnapshot(start: BatchStart & Pick<Snapshot, 'tombstones'>): StoredSnapshot {
  return { ...start, parcels: new Map(), pushes: new Map(), unrecorded: new Set(), overfull: new Set() }
}

export function addLoaded(snapshot: StoredSnapshot, loaded: Loaded): StoredSnapshot {
  const { needs } = loaded
  const parcels = new Map(snapshot.parcels)
  const change = (parcelId: number, part: Partial<KnownParcel>) => {
    const parcel = parcels.get(parcelId)
    if (parcel !== undefined) parcels.set(parcelId, { ...parcel, ...part })
  }
  for (const state of loaded.parcels) parcels.set(state.parcelId, { ...UNLOADED, state })
  for (const [parcelId, asked] of Map.groupBy(needs.seconds, (need) => need.parcelId)) {
    const seconds = new Map(parcels.get(parcelId)?.seconds)
    const found = bySecond(loaded.seconds.get(parcelId) ?? [])
    for (const { second } of asked) seconds.set(second, found.get(second) ?? [])
    change(parcelId, { seconds })
  }
  for (const parcelId of needs.whole) change(parcelId, { seconds: bySecond(loaded.whole.get(parcelId) ?? []), whole: true })
  for (const parcelId of needs.answers) change(parcelId, { answers: loaded.answers.get(parcelId) ?? [] })
  for (const parcelId of needs.orders) change(parcelId, { order: loaded.orders.get(parcelId) ?? [] })
  for (const parcelId of needs.bodies) change(parcelId, { bodies: loaded.bodies.get(parcelId) ?? [] })
  for (const parcelId of needs.contexts) change(parcelId, { context: loaded.contexts.get(parcelId) ?? null })
  const unrecorded = needs.pushes.filter(({ parcelId }) => parcelId === NO_PARCEL).map(({ digest }) => digest)
  return {
    ...snapshot,
    parcels,
    pushes: new Map([...snapshot.pushes, ...loaded.pushes]),
    unrecorded: new Set([...snapshot.unrecorded, ...unrecorded]),
  }
}

const UNLOADED: Omit<KnownParcel, 'state'> = { seconds: new Map(), whole: false, answers: null, order: null, bodies: null, context: null }

function bySecond(sightings: readonly KeptSighting[]): ReadonlyMap<number, readonly KeptSighting[]> {
  return Map.groupBy(sightings, ({ sighting }) => secondOf(sighting.instant.atMs))
}

/** Converts epoch milliseconds to whole seconds since the epoch. */
export function secondOf(atMs: number): number {
  return Math.floor(atMs / 1000)
}

import type { Endpoint } from '../delivery/endpoint.ts'
import type { CadenceModel } from '../polling/cadence.ts'
import type { BackfillSpan } from './audience.ts'
import type { Tombstones } from './erased.ts'
import type { KeptAnswer } from './kept-answers.ts'
import type { IdentifierState, ParcelState } from './parcel-state.ts'
import type { KeptSighting } from './sightings.ts'

/** The facts that decide whether an endpoint is sent an event. */
export interface Subscriber {
  readonly endpoint: Endpoint
  /** While it catches up, the last sequence of the feed that was queued for it; null: it has caught up. */
  readonly queuedTo: number | null
  /** The sequences over which it received backfill; null: never. */
  readonly backfilled: BackfillSpan | null
}

/** A recorded push whose bytes are kept. */
export interface KeptBody {
  readonly inboxId: number
  readonly body: Uint8Array
}

/** A stored parcel, as far as it was loaded. Null: this part was not loaded. */
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
  readonly bodies: readonly KeptBody[] | null
}

/**
 * The first numbers that a change set may use. On SQLite they are the first unused ones and final, because only one writer gives numbers.
 * On PostgreSQL they are provisional and above all real ones. The store replaces them when it applies the change set.
 */
export interface NextNumbers {
  readonly parcelId: number
  readonly sequence: number
  readonly inboxId: number
}

/** Everything that decides a batch. */
export interface Snapshot {
  readonly next: NextNumbers
  readonly identifiers: ReadonlyMap<string, IdentifierState>
  readonly parcels: ReadonlyMap<number, KnownParcel>
  /** The pushes of the batch that are stored already: their inbox ids, by `pushKey`. */
  readonly pushes: ReadonlyMap<string, number>
  /** The digests that were looked up among pushes without a parcel. */
  readonly unrecorded: ReadonlySet<string>
  /** Sets of parcels that together exceed the limit of one parcel, by `joinKey`. */
  readonly overfull: ReadonlySet<string>
  readonly endpoints: readonly Subscriber[]
  /** The tombstones of the identifiers that the observations name. */
  readonly tombstones: Tombstones
  /** The learnt model of the carrier. */
  readonly model: CadenceModel
}

/** The part of a snapshot that comes from the store. */
export type StoredSnapshot = Omit<Snapshot, 'model'>

/** The part that every batch begins with: the next numbers, the endpoints, and the identifiers that its observations name. */
export type BatchStart = Pick<Snapshot, 'next' | 'identifiers' | 'endpoints'>

/**
 * Used as the parcel id of pushes that are not recorded. They belong to no parcel, so a push that is recorded later is not their duplicate.
 */
export const NO_PARCEL = 0

/** The key of a push in `Snapshot.pushes`. */
export function pushKey(parcelId: number, digest: string): string {
  return `${parcelId}/${digest}`
}

/** The key of a set of parcels in `Snapshot.overfull`. The ids are in ascending order. */
export function joinKey(parcelIds: readonly number[]): string {
  return parcelIds.join()
}

/** The parts of a snapshot that an engine loads together. Parcels are named by id. */
export interface Needs {
  /** The states of parcels. Other parts of a parcel are loaded with its state, or later. */
  readonly parcels: readonly number[]
  /** Pushes to look for in the inbox. */
  readonly pushes: readonly { readonly parcelId: number; readonly digest: string }[]
  /** Sightings of one second. Each second of a parcel occurs once. */
  readonly seconds: readonly SecondNeed[]
  /** All sightings of parcels. */
  readonly whole: readonly number[]
  readonly answers: readonly number[]
  readonly orders: readonly number[]
  readonly bodies: readonly number[]
}

export interface SecondNeed {
  readonly parcelId: number
  /** Seconds since the epoch. */
  readonly second: number
  /** The pushes that need it. */
  readonly digests: readonly string[]
}

/** The needs of a batch. */
export interface BatchNeeds extends Needs {
  /** Sets of parcels to load completely, because they are to be joined; see `startJoins`. The ids are in ascending order. */
  readonly joins: readonly (readonly number[])[]
}

/**
 * The data that an engine has loaded. If `needs` names something and the maps and sets do not have it, the store does not have it either.
 */
export interface Loaded {
  /** The needs that it has looked for. Some requested needs may be missing (see `certainNeeds`). */
  readonly needs: Needs
  readonly parcels: readonly ParcelState[]
  /** Inbox ids, by `pushKey`. */
  readonly pushes: ReadonlyMap<string, number>
  /** The sightings of the needed seconds, by parcel. */
  readonly seconds: ReadonlyMap<number, readonly KeptSighting[]>
  /** All sightings, by parcel. */
  readonly whole: ReadonlyMap<number, readonly KeptSighting[]>
  readonly answers: ReadonlyMap<number, readonly KeptAnswer[]>
  readonly orders: ReadonlyMap<number, readonly string[]>
  readonly bodies: ReadonlyMap<number, readonly KeptBody[]>
}

const NOTHING_NEEDED: Needs = { parcels: [], pushes: [], seconds: [], whole: [], answers: [], orders: [], bodies: [] }

/** Needs with only the given ones. */
export function onlyNeeds(needs: Partial<Needs>): Needs {
  return { ...NOTHING_NEEDED, ...needs }
}

/** A snapshot that has only the start of the batch. */
export function startSnapshot(start: BatchStart & Pick<Snapshot, 'tombstones'>): StoredSnapshot {
  return { ...start, parcels: new Map(), pushes: new Map(), unrecorded: new Set(), overfull: new Set() }
}

/** Adds loaded data to a snapshot. */
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
  const unrecorded = needs.pushes.filter(({ parcelId }) => parcelId === NO_PARCEL).map(({ digest }) => digest)
  return {
    ...snapshot,
    parcels,
    pushes: new Map([...snapshot.pushes, ...loaded.pushes]),
    unrecorded: new Set([...snapshot.unrecorded, ...unrecorded]),
  }
}

const UNLOADED: Omit<KnownParcel, 'state'> = { seconds: new Map(), whole: false, answers: null, order: null, bodies: null }

function bySecond(sightings: readonly KeptSighting[]): ReadonlyMap<number, readonly KeptSighting[]> {
  return Map.groupBy(sightings, ({ sighting }) => secondOf(sighting.instant.atMs))
}

/** The second since the epoch into which an instant (epoch milliseconds) falls. */
export function secondOf(atMs: number): number {
  return Math.floor(atMs / 1000)
}

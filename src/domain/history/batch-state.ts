import type { ScanSample } from '../polling/scan-rate.ts'
import { emptyWriteSet, type WriteSet } from './change-set.ts'
import type { ErasedName, Tombstone } from './erased.ts'
import type { KeptAnswer } from './kept-answers.ts'
import type { PollObservation } from './observation.ts'
import { type IdentifierState, newParcel, type ParcelState } from './parcel-state.ts'
import { type KeptSighting, sightingId, sightingsOf } from './sightings.ts'
import { type BatchNeeds, type KeptBody, type NextNumbers, NO_PARCEL, type SecondNeed, type Snapshot, secondOf } from './snapshot.ts'

/** A parcel as the decided observations of the batch leave it. */
export interface ParcelDraft {
  readonly state: ParcelState
  /** The stored parcels it consists of; empty: it is new. */
  readonly origins: readonly number[]
  /** Its loaded sightings, by second since the epoch. */
  readonly seconds: ReadonlyMap<number, readonly KeptSighting[]>
  /** Whether `seconds` holds all of them. */
  readonly whole: boolean
  /** The store holds none of its sightings after this second. */
  readonly storedTo: number
  /** Null: not loaded. */
  readonly answers: readonly KeptAnswer[] | null
  /**
   * Where the order of entries at equal instants comes from: a poll of this batch, or what the store holds of the parcel with this id;
   * null: nothing decides it.
   */
  readonly orderFrom: PollObservation | number | null
  /** Whether the carrier may be asked about any of its identifiers; null: not loaded. */
  readonly pollable: boolean | null
  /** The pushes about it that this batch recorded. */
  readonly bodies: readonly KeptBody[]
}

/** The data that the decision needs and the snapshot lacks; `needsOf` turns it into `BatchNeeds`. */
export interface Missing {
  readonly seconds: Map<string, SecondNeed>
  readonly joins: Map<string, readonly number[]>
  readonly whole: Set<number>
  readonly answers: Set<number>
  readonly orders: Set<number>
  readonly pollable: Set<number>
  readonly bodies: Set<number>
  readonly unrecorded: Set<string>
}

type Counters = { -readonly [Name in keyof NextNumbers]: number }

/**
 * The state of a batch while it is decided: what its observations have created, joined and written so far. An observation changes it
 * completely or not at all: while it may still be refused it only takes numbers, which can be given back (`giveNumbersBack`), and notes
 * missing data. Drafts and writes are added only after its merge, by `note-observation`.
 */
export interface BatchState {
  readonly snapshot: Snapshot
  /** Epoch milliseconds. */
  readonly nowMs: number
  readonly missing: Missing
  /** The next unused ids. */
  next: Counters
  /** The next unused ids before the current observation. */
  nextBefore: Counters
  readonly identifiers: Map<string, IdentifierState>
  /** Maps the id of a parcel that was joined to another to the id of the other. */
  readonly survivors: Map<number, number>
  readonly drafts: Map<number, ParcelDraft>
  /** The pushes that this batch stores, by digest. */
  readonly kept: Map<string, { readonly inboxId: number; readonly parcelId: number }[]>
  readonly writes: WriteSet[]
  /** The tombstones of the snapshot, and of the identifiers that the batch found to be erased. */
  readonly tombstones: Map<string, Tombstone>
  readonly erased: ErasedName[]
  readonly scanSamples: ScanSample[]
  readonly foundByPoll: number[]
}

export function startBatch(snapshot: Snapshot, nowMs: number): BatchState {
  return {
    snapshot,
    nowMs,
    missing: {
      seconds: new Map(),
      joins: new Map(),
      whole: new Set(),
      answers: new Set(),
      orders: new Set(),
      pollable: new Set(),
      bodies: new Set(),
      unrecorded: new Set(),
    },
    next: { ...snapshot.next },
    nextBefore: { ...snapshot.next },
    identifiers: new Map(),
    survivors: new Map(),
    drafts: new Map(),
    kept: new Map(),
    writes: [emptyWriteSet(null)],
    tombstones: new Map(snapshot.tombstones),
    erased: [],
    scanSamples: [],
    foundByPoll: [],
  }
}

/** The data to load before the batch can be decided; null: none. */
export function needsOf({ missing }: BatchState): BatchNeeds | null {
  const isComplete = Object.values(missing).every((one: { readonly size: number }) => one.size === 0)
  if (isComplete) return null
  return {
    parcels: [],
    pushes: [...missing.unrecorded].map((digest) => ({ parcelId: NO_PARCEL, digest })),
    seconds: [...missing.seconds.values()],
    joins: [...missing.joins.values()],
    whole: [...missing.whole],
    answers: [...missing.answers],
    orders: [...missing.orders],
    pollable: [...missing.pollable],
    bodies: [...missing.bodies],
  }
}

/** The write set that the current observation adds to. */
export function currentWrites(batch: BatchState): WriteSet {
  const writes = batch.writes.at(-1)
  if (writes === undefined) throw new Error('a batch was started without a write set')
  return writes
}

/** Marks the point to which `giveNumbersBack` returns. Called before each observation. */
export function startObservation(batch: BatchState): void {
  batch.nextBefore = { ...batch.next }
}

/** Gives back the numbers that the current observation took, because it is refused. */
export function giveNumbersBack(batch: BatchState): void {
  batch.next = { ...batch.nextBefore }
}

export function nextSequence(batch: BatchState): number {
  return batch.next.sequence++
}

/** An identifier as the batch leaves it so far; undefined: no parcel has it. */
export function findIdentifier({ identifiers, snapshot }: BatchState, value: string): IdentifierState | undefined {
  return identifiers.get(value) ?? snapshot.identifiers.get(value)
}

/** The id of the parcel that a parcel was joined to, or its own. */
export function survivorOf({ survivors }: BatchState, parcelId: number): number {
  let survivor = parcelId
  for (let next = survivors.get(survivor); next !== undefined; next = survivors.get(survivor)) survivor = next
  return survivor
}

/** The draft of a parcel that the batch or the store knows. Throws if neither does, which would be a bug. */
export function draftOf({ drafts, snapshot }: BatchState, parcelId: number): ParcelDraft {
  const draft = drafts.get(parcelId)
  if (draft !== undefined) return draft
  const known = snapshot.parcels.get(parcelId)
  if (known === undefined) throw new Error(`the store holds an identifier of parcel ${parcelId} but not the parcel`)
  const { state, seconds, whole, answers, pollable } = known
  return {
    state,
    origins: [parcelId],
    seconds,
    whole,
    storedTo: state.latest === null ? Number.NEGATIVE_INFINITY : secondOf(state.latest.atMs),
    answers,
    orderFrom: parcelId,
    pollable,
    bodies: [],
  }
}

/** The draft of a parcel that the batch creates. */
export function newDraft(parcelId: number, nowMs: number): ParcelDraft {
  return {
    state: newParcel(parcelId, nowMs),
    origins: [],
    seconds: new Map(),
    whole: true,
    storedTo: Number.NEGATIVE_INFINITY,
    answers: [],
    orderFrom: null,
    pollable: true,
    bodies: [],
  }
}

/** The sightings of a parcel in one second. Notes the second as missing if it was not loaded, and then returns none. */
export function sightingsInSecond({ missing }: BatchState, draft: ParcelDraft, second: number): readonly KeptSighting[] {
  const known = draft.seconds.get(second)
  if (known !== undefined) return known
  if (!draft.whole && second <= draft.storedTo) {
    const { parcelId } = draft.state
    missing.seconds.set(`${parcelId}/${second}`, { parcelId, second, digests: [] })
  }
  return []
}

/** All sightings of a parcel. Notes the parcel as missing if they were not all loaded. */
export function allSightings({ missing }: BatchState, draft: ParcelDraft): readonly KeptSighting[] {
  if (!draft.whole) missing.whole.add(draft.state.parcelId)
  return [...draft.seconds.values()].flat()
}

/** The polled answers kept of a parcel. Notes them as missing if they were not loaded, and then returns none. */
export function answersOf({ missing }: BatchState, draft: ParcelDraft): readonly KeptAnswer[] {
  if (draft.answers !== null) return draft.answers
  for (const parcelId of draft.origins) missing.answers.add(parcelId)
  return []
}

/**
 * The sighting ids of the answer that decides the order at equal instants, in its order. Notes the order as missing if it was not loaded.
 */
export function orderOf({ missing, snapshot }: BatchState, { orderFrom }: ParcelDraft): readonly string[] {
  if (orderFrom === null) return []
  if (typeof orderFrom !== 'number') return sightingsOf(orderFrom).map(sightingId)
  const order = snapshot.parcels.get(orderFrom)?.order ?? null
  if (order === null) missing.orders.add(orderFrom)
  return order ?? []
}

/** Whether the carrier may be asked about any identifier of a parcel. Notes it as missing if it was not loaded, and then returns false. */
export function isPollable({ missing }: BatchState, draft: ParcelDraft): boolean {
  if (draft.pollable === null) for (const parcelId of draft.origins) missing.pollable.add(parcelId)
  return draft.pollable ?? false
}

/** The recorded pushes of a parcel whose bytes are kept. Notes them as missing if they were not loaded. */
export function bodiesOf({ missing, snapshot }: BatchState, draft: ParcelDraft): readonly KeptBody[] {
  const stored = draft.origins.flatMap((parcelId) => {
    const bodies = snapshot.parcels.get(parcelId)?.bodies ?? null
    if (bodies === null) missing.bodies.add(parcelId)
    return bodies ?? []
  })
  return [...stored, ...draft.bodies]
}

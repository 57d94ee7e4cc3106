import type { FeedEvent } from '../delivery/feed-entry.ts'
import type { ScanSample } from '../polling/scan-rate.ts'
import { emptyWriteSet, type WriteSet } from './change-set.ts'
import type { ErasedName, Tombstone } from './erased.ts'
import { deriveEntries } from './history.ts'
import type { PollObservation, PushObservation } from './observation.ts'
import { countsFromMs, type IdentifierState, type LatestEntry, newParcel, type ParcelJoin, type ParcelState } from './parcel-state.ts'
import { answerId, ENTRIES_MAX, type KeptAnswer, keepAnswers } from './pull-response.ts'
import type { Noted } from './report-notes.ts'
import { type KeptSighting, listedId, mergeSightings, sightingsOf, uniteSightings } from './sightings.ts'
import {
  type BatchNeeds,
  joinKey,
  type KeptBody,
  type NextNumbers,
  NO_PARCEL,
  type SecondNeed,
  type Snapshot,
  secondOf,
} from './snapshot.ts'

/** A parcel as it is after the observations that the batch has decided so far. */
export interface ParcelDraft {
  readonly state: ParcelState
  /** The ids of the stored parcels that were joined into it, or its own id; empty: the parcel is new. */
  readonly origins: readonly number[]
  /** Its loaded sightings, by the second of their time (since the epoch). */
  readonly seconds: ReadonlyMap<number, readonly KeptSighting[]>
  /** Whether `seconds` contains all sightings of the parcel. */
  readonly whole: boolean
  /** The store has no sighting of the parcel after this second. */
  readonly storedTo: number
  /** The kept answers of polls; null: they were not loaded. */
  readonly answers: readonly KeptAnswer[] | null
  /** Decides the order of entries with the same instant: a poll of this batch, or the stored order of the parcel with this id; null: neither. */
  readonly orderFrom: PollObservation | number | null
  /** The pushes about the parcel that this batch has recorded. */
  readonly bodies: readonly KeptBody[]
}

/** The data that `decide` needs but the snapshot lacks. `needsOf` turns it into `BatchNeeds`. */
export interface Missing {
  readonly seconds: Map<string, SecondNeed>
  readonly joins: Map<string, readonly number[]>
  readonly whole: Set<number>
  readonly answers: Set<number>
  readonly orders: Set<number>
  readonly bodies: Set<number>
  readonly unrecorded: Set<string>
}

type Counters = { -readonly [Name in keyof NextNumbers]: number }

/**
 * The state of a batch while it is decided: all that its observations have created, joined and written so far.
 *
 * An observation changes this state completely or not at all. As long as it may be refused, it only takes new ids and notes missing data. If
 * it is refused, `giveNumbersBack` gives the ids back. After its merge has succeeded, `note-observation` adds drafts and writes.
 */
export interface BatchState {
  readonly snapshot: Snapshot
  readonly nowMs: number
  readonly missing: Missing
  /** The next unused ids. */
  next: Counters
  /** The next unused ids before the current observation. */
  nextBefore: Counters
  readonly identifiers: Map<string, IdentifierState>
  /** Maps the id of each parcel that was joined to another one to the id of that other parcel. */
  readonly survivors: Map<number, number>
  readonly drafts: Map<number, ParcelDraft>
  /** The pushes that this batch stores, by the digest of their bytes. */
  readonly kept: Map<string, { readonly inboxId: number; readonly parcelId: number }[]>
  readonly writes: WriteSet[]
  /** The tombstones of the snapshot, and those of further identifiers with which this batch has seen erased parcels. */
  readonly tombstones: Map<string, Tombstone>
  readonly erased: ErasedName[]
  readonly scanSamples: ScanSample[]
  readonly foundByPoll: number[]
  readonly noted: Noted[]
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
    noted: [],
  }
}

/** Returns the data to load before the batch can be decided; null: nothing is missing. */
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
    bodies: [...missing.bodies],
    contexts: [],
  }
}

export function currentWrites(batch: BatchState): WriteSet {
  const writes = batch.writes.at(-1)
  if (writes === undefined) throw new Error('a batch was started without a write set')
  return writes
}

/** Called before each observation. Remembers the next unused ids for `giveNumbersBack`. */
export function startObservation(batch: BatchState): void {
  batch.nextBefore = { ...batch.next }
}

export function giveNumbersBack(batch: BatchState): void {
  batch.next = { ...batch.nextBefore }
}

export function nextSequence(batch: BatchState): number {
  return batch.next.sequence++
}

/** Finds an identifier that this batch or the store knows; undefined: no parcel has it. */
export function findIdentifier({ identifiers, snapshot }: BatchState, value: string): IdentifierState | undefined {
  return identifiers.get(value) ?? snapshot.identifiers.get(value)
}

/** Returns the id of the parcel to which a parcel was joined, or the parcel's own id. */
export function survivorOf({ survivors }: BatchState, parcelId: number): number {
  let survivor = parcelId
  for (let next = survivors.get(survivor); next !== undefined; next = survivors.get(survivor)) survivor = next
  return survivor
}

/** Returns the draft of a known parcel. Throws if neither the batch nor the store knows the parcel, because that is a bug. */
export function draftOf({ drafts, snapshot }: BatchState, parcelId: number): ParcelDraft {
  const draft = drafts.get(parcelId)
  if (draft !== undefined) return draft
  const known = snapshot.parcels.get(parcelId)
  if (known === undefined) throw new Error(`the store holds an identifier of parcel ${parcelId} but not the parcel`)
  const { state, seconds, whole, answers } = known
  return {
    state,
    origins: [parcelId],
    seconds,
    whole,
    storedTo: state.latest === null ? Number.NEGATIVE_INFINITY : secondOf(state.latest.atMs),
    answers,
    orderFrom: parcelId,
    bodies: [],
  }
}

export function newDraft(parcelId: number, nowMs: number): ParcelDraft {
  return {
    state: newParcel(parcelId, nowMs),
    origins: [],
    seconds: new Map(),
    whole: true,
    storedTo: Number.NEGATIVE_INFINITY,
    answers: [],
    orderFrom: null,
    bodies: [],
  }
}

/** Returns the sightings of a parcel in one second. If the second was not loaded, notes it as missing and returns none. */
export function sightingsInSecond({ missing }: BatchState, draft: ParcelDraft, second: number): readonly KeptSighting[] {
  const known = draft.seconds.get(second)
  if (known !== undefined) return known
  if (!draft.whole && second <= draft.storedTo) {
    const { parcelId } = draft.state
    missing.seconds.set(`${parcelId}/${second}`, { parcelId, second, digests: [] })
  }
  return []
}

/** Returns all loaded sightings of a parcel. If some were not loaded, notes the parcel as missing. */
export function allSightings({ missing }: BatchState, draft: ParcelDraft): readonly KeptSighting[] {
  if (!draft.whole) missing.whole.add(draft.state.parcelId)
  return [...draft.seconds.values()].flat()
}

/** Returns the kept answers of a parcel. If they were not loaded, notes them as missing and returns none. */
export function answersOf({ missing }: BatchState, draft: ParcelDraft): readonly KeptAnswer[] {
  if (draft.answers !== null) return draft.answers
  for (const parcelId of draft.origins) missing.answers.add(parcelId)
  return []
}

/**
 * Returns the `listedId` of each sighting of the answer that decides the order of entries at equal instants, in the order of that answer. If the
 * order was not loaded, notes it as missing and returns none.
 */
export function orderOf({ missing, snapshot }: BatchState, { orderFrom }: ParcelDraft): readonly string[] {
  if (orderFrom === null) return []
  if (typeof orderFrom !== 'number') return sightingsOf(orderFrom).map(listedId)
  const order = snapshot.parcels.get(orderFrom)?.order ?? null
  if (order === null) missing.orders.add(orderFrom)
  return order ?? []
}

/** Returns the recorded pushes of a parcel whose bytes are kept. If they were not loaded, notes them as missing. */
export function bodiesOf({ missing, snapshot }: BatchState, draft: ParcelDraft): readonly KeptBody[] {
  const stored = draft.origins.flatMap((parcelId) => {
    const bodies = snapshot.parcels.get(parcelId)?.bodies ?? null
    if (bodies === null) missing.bodies.add(parcelId)
    return bodies ?? []
  })
  return [...stored, ...draft.bodies]
}

/** The join of several parcels, before the observation that named them together is added. */
export interface DraftJoin {
  readonly draft: ParcelDraft
  readonly join: ParcelJoin
  readonly feed: readonly FeedEvent[]
}

/**
 * Joins parcels that proved to be one (DOMAIN 1.4). The first parcel, which is the oldest, survives. Null: together they have too many entries
 * for one parcel (DOMAIN 1.6), or their sightings are not all loaded yet.
 */
export function joinDrafts(
  batch: BatchState,
  parcelIds: readonly number[],
  observation: PushObservation | PollObservation,
  nowMs: number,
): DraftJoin | null {
  const drafts = parcelIds.map((parcelId) => draftOf(batch, parcelId))
  const origins = drafts.flatMap((draft) => draft.origins).sort((a, b) => a - b)
  if (drafts.some(({ whole }) => !whole)) {
    // If the sightings loaded so far already give too many entries, the parcels are in `overfull`, and the other sightings are never loaded.
    const key = joinKey(origins)
    if (!batch.snapshot.overfull.has(key)) batch.missing.joins.set(key, origins)
    return null
  }
  for (const draft of drafts) answersOf(batch, draft)
  const states = drafts.map(({ state }) => state)
  const held = drafts.map((draft) => ({ state: draft.state, sightings: allSightings(batch, draft) }))
  const { kept, shared, renumbered } = uniteSightings(held.map(({ sightings }) => sightings))
  const entries = deriveEntries(mergeSightings(kept, sightingsOf(observation), () => 0, nowMs).kept).length
  // A parcel that was stored before there was a limit may exceed it. So the joined parcel may have as many entries as the largest of these parcels.
  const entriesMax = states.reduce((most, { entryCount }) => Math.max(most, entryCount), ENTRIES_MAX)
  if (entries > entriesMax || (entries > ENTRIES_MAX && entries > deriveEntries(kept).length)) return null

  const [survivor, ...others] = held
  if (survivor === undefined) throw new Error('no parcels to join')
  const parcel = states.reduce(joinStates)
  const joins = others.map((other) => ({ ...other, sequence: nextSequence(batch) }))
  const seconds = Map.groupBy(kept, ({ sighting }) => secondOf(sighting.instant.atMs))
  return {
    join: { survivor, others: joins, parcel, shared, renumbered, nowMs },
    draft: { ...uniteDrafts(drafts), state: parcel, origins, seconds },
    feed: joins.map(({ sequence, state }) => ({
      sequence,
      kind: 'join',
      parcelId: parcel.parcelId,
      entry: state.parcelId,
      payloadRef: null,
    })),
  }
}

function uniteDrafts(drafts: readonly ParcelDraft[]): Omit<ParcelDraft, 'state' | 'origins' | 'seconds'> {
  const isLoaded = drafts.every(({ answers }) => answers !== null)
  const { kept, order } = keepAnswers(drafts.flatMap(({ answers }) => answers ?? []))
  return {
    whole: true,
    storedTo: Number.POSITIVE_INFINITY,
    answers: isLoaded ? kept : null,
    orderFrom: order === null ? null : (drafts.find((draft) => holds(draft, order))?.orderFrom ?? null),
    bodies: drafts.flatMap(({ bodies }) => bodies),
  }
}

function holds({ answers }: ParcelDraft, order: KeptAnswer): boolean {
  const own = keepAnswers(answers ?? []).order
  return own !== null && answerId(own) === answerId(order)
}

function joinStates(survivor: ParcelState, other: ParcelState): ParcelState {
  return {
    ...survivor,
    watchedAtMs: least(survivor.watchedAtMs, other.watchedAtMs),
    firstPushedAtMs: least(survivor.firstPushedAtMs, other.firstPushedAtMs),
    activatedAtMs: Math.max(survivor.activatedAtMs, other.activatedAtMs),
    latest: later(survivor.latest, other.latest),
    lastSeenAtMs: greatest(survivor.lastSeenAtMs, other.lastSeenAtMs),
    checkedAtMs: greatest(survivor.checkedAtMs, other.checkedAtMs),
    full: survivor.full || other.full,
  }
}

/** Returns the later of two entries. If their times are equal, returns the one that the relay learnt of first. Null: there is no entry. */
function later(a: LatestEntry | null, b: LatestEntry | null): LatestEntry | null {
  if (a === null || b === null) return a ?? b
  return a.atMs > b.atMs || (a.atMs === b.atMs && countsFromMs(a) <= countsFromMs(b)) ? a : b
}

function least(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

function greatest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}

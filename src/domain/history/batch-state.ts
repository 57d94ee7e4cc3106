import type { ScanSample } from '../polling/scan-rate.ts'
import { emptyWriteSet, type WriteSet } from './change-set.ts'
import type { PollObservation } from './observation.ts'
import type { KeptAnswer } from './parcel-record.ts'
import { type IdentifierState, newParcel, type ParcelState } from './parcel-state.ts'
import type { RecordBatch } from './record-batch.ts'
import { type KeptSighting, sightingId, sightingsOf } from './sightings.ts'
import type { KeptBody, Needs, Snapshot } from './snapshot.ts'

/** A parcel as the observations decided so far leave it. */
export interface ParcelDraft {
  readonly state: ParcelState
  /** The parcels of the store that it is made of; none: it is new. */
  readonly origins: readonly number[]
  /** What is known of its sightings, by second since the epoch. */
  readonly seconds: ReadonlyMap<number, readonly KeptSighting[]>
  /** Whether `seconds` holds all of them. */
  readonly whole: boolean
  /** The store holds no sighting of it after this second. */
  readonly storedTo: number
  /** Null: not loaded. */
  readonly answers: readonly KeptAnswer[] | null
  /** What decides the order at equal instants: a poll of this batch, or what the store holds of a parcel; null: nothing. */
  readonly orderFrom: PollObservation | number | null
  /** Whether the carrier may be asked for any of its identifiers; null: not loaded. */
  readonly pollable: boolean | null
  /** Pushes that this batch recorded. */
  readonly bodies: readonly KeptBody[]
}

/** What is needed and was not loaded. */
export interface Missing {
  readonly seconds: Map<string, readonly [number, number]>
  readonly joins: Map<string, readonly number[]>
  readonly whole: Set<number>
  readonly answers: Set<number>
  readonly orders: Set<number>
  readonly pollable: Set<number>
  readonly bodies: Set<number>
  readonly unrecorded: Set<string>
}

/** A batch on its way: what the observations decided so far created, joined and wrote. Only a whole observation changes it. */
export interface BatchState {
  readonly snapshot: Snapshot
  readonly batch: RecordBatch
  readonly missing: Missing
  /** The next numbers to be given. */
  next: { parcelId: number; sequence: number; inboxId: number }
  readonly identifiers: Map<string, IdentifierState>
  /** Which parcel a parcel was joined to. */
  readonly survivors: Map<number, number>
  readonly drafts: Map<number, ParcelDraft>
  /** Pushes that this batch keeps, by digest: where, and of which parcel. */
  readonly kept: Map<string, { readonly inboxId: number; readonly parcelId: number }[]>
  readonly writes: WriteSet[]
  readonly scanSamples: ScanSample[]
  readonly foundByPoll: number[]
}

export function startBatch(snapshot: Snapshot, batch: RecordBatch): BatchState {
  return {
    snapshot,
    batch,
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
    identifiers: new Map(),
    survivors: new Map(),
    drafts: new Map(),
    kept: new Map(),
    writes: [emptyWriteSet(null)],
    scanSamples: [],
    foundByPoll: [],
  }
}

export function needsOf({ missing }: BatchState): Needs | null {
  const isComplete = Object.values(missing).every((one: { readonly size: number }) => one.size === 0)
  if (isComplete) return null
  return {
    seconds: [...missing.seconds.values()],
    joins: [...missing.joins.values()],
    whole: [...missing.whole],
    answers: [...missing.answers],
    orders: [...missing.orders],
    pollable: [...missing.pollable],
    bodies: [...missing.bodies],
    unrecorded: [...missing.unrecorded],
  }
}

export function currentWrites(batch: BatchState): WriteSet {
  const writes = batch.writes.at(-1)
  if (writes === undefined) throw new Error('a batch was begun without a set of writes')
  return writes
}

export function nextSequence(batch: BatchState): number {
  return batch.next.sequence++
}

export function findIdentifier({ identifiers, snapshot }: BatchState, value: string): IdentifierState | undefined {
  return identifiers.get(value) ?? snapshot.identifiers.get(value)
}

/** The parcel that goes on for a parcel. */
export function survivorOf({ survivors }: BatchState, parcelId: number): number {
  let survivor = parcelId
  for (let next = survivors.get(survivor); next !== undefined; next = survivors.get(survivor)) survivor = next
  return survivor
}

export function draftOf({ drafts, snapshot }: BatchState, parcelId: number): ParcelDraft {
  const draft = drafts.get(parcelId)
  if (draft !== undefined) return draft
  const known = snapshot.parcels.get(parcelId)
  if (known === undefined) throw new Error(`the store holds an identifier of parcel ${parcelId}, and no such parcel`)
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

export function secondOf(atMs: number): number {
  return Math.floor(atMs / 1000)
}

export function sightingsInSecond({ missing }: BatchState, draft: ParcelDraft, second: number): readonly KeptSighting[] {
  const known = draft.seconds.get(second)
  if (known !== undefined) return known
  if (!draft.whole && second <= draft.storedTo) {
    const { parcelId } = draft.state
    missing.seconds.set(`${parcelId}/${second}`, [parcelId, second])
  }
  return []
}

export function allSightings({ missing }: BatchState, draft: ParcelDraft): readonly KeptSighting[] {
  if (!draft.whole) missing.whole.add(draft.state.parcelId)
  return [...draft.seconds.values()].flat()
}

export function answersOf({ missing }: BatchState, draft: ParcelDraft): readonly KeptAnswer[] {
  if (draft.answers !== null) return draft.answers
  for (const parcelId of draft.origins) missing.answers.add(parcelId)
  return []
}

/** The sighting ids of the answer that decides the order, in its order. */
export function orderOf({ missing, snapshot }: BatchState, { orderFrom }: ParcelDraft): readonly string[] {
  if (orderFrom === null) return []
  if (typeof orderFrom !== 'number') return sightingsOf(orderFrom).map(sightingId)
  const order = snapshot.parcels.get(orderFrom)?.order ?? null
  if (order === null) missing.orders.add(orderFrom)
  return order ?? []
}

export function isPollable({ missing }: BatchState, draft: ParcelDraft): boolean {
  if (draft.pollable === null) for (const parcelId of draft.origins) missing.pollable.add(parcelId)
  return draft.pollable ?? false
}

/** The recorded pushes of a parcel whose bytes are kept. */
export function bodiesOf({ missing, snapshot }: BatchState, draft: ParcelDraft): readonly KeptBody[] {
  const stored = draft.origins.flatMap((parcelId) => {
    const bodies = snapshot.parcels.get(parcelId)?.bodies ?? null
    if (bodies === null) missing.bodies.add(parcelId)
    return bodies ?? []
  })
  return [...stored, ...draft.bodies]
}

import { createEntryCount } from '../../domain/history/count-entries.ts'
import type { IdentifierState, ParcelState } from '../../domain/history/parcel-state.ts'
import type { RecordBatch } from '../../domain/history/record-batch.ts'
import { componentsOf } from '../../domain/history/record-batch.ts'
import type { Incoming } from '../../domain/history/recording.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import { joinKey, type KeptBody, type KnownParcel, type Needs, NO_PARCEL, pushKey, type Snapshot } from '../../domain/history/snapshot.ts'
import type { Session } from '../engine.ts'
import { loadAnswers, loadAnswersOf } from '../history/answers.ts'
import { namesOf, parcelNamed, pushedBy, secondOf, stretchesOf } from '../history/batch-names.ts'
import type { Contents } from '../history/contents.ts'
import { pollableIdentifiers } from '../history/parcels.ts'
import { loadOrder, loadSightings, loadSightingsOf } from '../history/sightings.ts'
import { findTwin, listPushes } from '../ingest/inbox.ts'
import type { KnownParcels } from './known-parcels.ts'

/** The writing connection and its caches. */
export interface SnapshotSource {
  readonly session: Session
  readonly contents: Contents
  readonly known: KnownParcels
}

/** The part of a snapshot that comes from the store. */
export type StoredPart = Pick<Snapshot, 'identifiers' | 'parcels' | 'pushes' | 'unrecorded' | 'overfull'>

/** A stored part while it is being loaded. */
interface Loading {
  readonly source: SnapshotSource
  readonly nowMs: number
  readonly parcels: Map<number, KnownParcel>
  readonly pushes: Map<string, number>
  readonly unrecorded: Set<string>
  readonly overfull: Set<string>
}

/**
 * Loads what `decide` needs for a batch, in two rounds: first the parcels its observations name, then, per component, their contents.
 */
export async function loadSnapshot(source: SnapshotSource, batch: RecordBatch): Promise<StoredPart> {
  const identifiers = await loadNames(source, batch.observations)
  const parcelIds = new Set([...identifiers.values()].map(({ parcelId }) => parcelId))
  const loading: Loading = { source, nowMs: batch.nowMs, parcels: new Map(), pushes: new Map(), unrecorded: new Set(), overfull: new Set() }
  for (const state of await source.known.findMany([...parcelIds])) loading.parcels.set(state.parcelId, await emptyParcel(loading, state))
  await loadPushes(loading, batch, identifiers)
  await loadHistories(loading, batch, identifiers)
  const { parcels, pushes, unrecorded, overfull } = loading
  return { identifiers, parcels, pushes, unrecorded, overfull }
}

async function loadNames({ known }: SnapshotSource, observations: readonly Incoming[]): Promise<ReadonlyMap<string, IdentifierState>> {
  const found = await known.findIdentifiers(namesOf(observations))
  return new Map(found.map((identifier) => [identifier.value, identifier]))
}

async function emptyParcel({ source, nowMs }: Loading, state: ParcelState): Promise<KnownParcel> {
  // It matters only for a parcel that the carrier did not know.
  const pollable = state.stopped === 'unknown' ? (await pollableIdentifiers(source.session, state.parcelId, nowMs)).length > 0 : null
  return { state, seconds: new Map(), whole: false, answers: null, order: null, pollable, bodies: null }
}

/** Finds the pushes that are already in the inbox. */
async function loadPushes(loading: Loading, batch: RecordBatch, identifiers: ReadonlyMap<string, IdentifierState>): Promise<void> {
  for (const [at, incoming] of batch.observations.entries()) {
    if (incoming.kind === 'poll') continue
    const digest = batch.digests[at] ?? ''
    const observation = pushedBy(incoming)
    if (observation === null) {
      await loadUnrecorded(loading, digest)
      continue
    }
    const parcelId = parcelNamed(observation, identifiers)
    if (parcelId !== null) await loadPush(loading, parcelId, digest)
  }
}

async function loadPush({ source, pushes }: Loading, parcelId: number, digest: string): Promise<void> {
  const inboxId = await findTwin(source.session, parcelId, digest)
  if (inboxId !== null) pushes.set(pushKey(parcelId, digest), inboxId)
}

async function loadUnrecorded(loading: Loading, digest: string): Promise<void> {
  await loadPush(loading, NO_PARCEL, digest)
  loading.unrecorded.add(digest)
}

async function loadHistories(loading: Loading, batch: RecordBatch, identifiers: ReadonlyMap<string, IdentifierState>): Promise<void> {
  for (const { parcels, members, hasPoll } of componentsOf(batch.observations, identifiers)) {
    const [only] = parcels
    if (only === undefined) continue
    if (parcels.size > 1)
      await loadJoin(
        loading,
        [...parcels].sort((a, b) => a - b),
      )
    else if (hasPoll) await loadPolled(loading, only)
    else for (const at of members) await loadTouched(loading, only, batch, at)
  }
}

async function loadPolled(loading: Loading, parcelId: number): Promise<void> {
  await loadWhole(loading, parcelId)
  change(loading, parcelId, { answers: await loadAnswers(loading.source.session, parcelId) })
}

/** Loads the sightings in the second of a push. Skips pushes that are newer than every entry, and duplicates. */
async function loadTouched(loading: Loading, parcelId: number, batch: RecordBatch, at: number): Promise<void> {
  const incoming = batch.observations[at]
  const observation = incoming === undefined ? null : pushedBy(incoming)
  const parcel = loading.parcels.get(parcelId)
  if (observation === null || parcel === undefined || parcel.state.latest === null) return
  const second = secondOf(observation.sighting.instant.atMs)
  if (second > secondOf(parcel.state.latest.atMs) || parcel.seconds.has(second)) return
  if (loading.pushes.has(pushKey(parcelId, batch.digests[at] ?? ''))) return
  const held = await loadSecond(loading, parcelId, second)
  // A sighting in a known second rarely adds to an entry; then `decide` needs what the answers say about the whole parcel.
  if (held.length > 0 && parcel.answers === null)
    change(loading, parcelId, { answers: await loadAnswers(loading.source.session, parcelId) })
}

async function loadSecond(loading: Loading, parcelId: number, second: number): Promise<readonly KeptSighting[]> {
  const { session, contents } = loading.source
  const held = await loadSightings(session, contents, parcelId, second)
  const seconds = new Map(loading.parcels.get(parcelId)?.seconds).set(second, held)
  change(loading, parcelId, { seconds })
  return held
}

async function loadWhole(loading: Loading, parcelId: number): Promise<void> {
  if (loading.parcels.get(parcelId)?.whole === true) return
  const { session, contents } = loading.source
  setWhole(loading, parcelId, await loadSightings(session, contents, parcelId, null))
}

function setWhole(loading: Loading, parcelId: number, sightings: readonly KeptSighting[]): void {
  change(loading, parcelId, { seconds: Map.groupBy(sightings, ({ sighting }) => secondOf(sighting.instant.atMs)), whole: true })
}

function change({ parcels }: Loading, parcelId: number, loaded: Partial<KnownParcel>): void {
  const parcel = parcels.get(parcelId)
  if (parcel !== undefined) parcels.set(parcelId, { ...parcel, ...loaded })
}

/** Loads parcels to be joined. Stops as soon as they have too many entries for one parcel. */
async function loadJoin(loading: Loading, parcelIds: readonly number[]): Promise<void> {
  const { session, contents } = loading.source
  const states = parcelIds.flatMap((parcelId) => loading.parcels.get(parcelId)?.state ?? [])
  const { stretches, entriesMax } = stretchesOf(states)
  const count = createEntryCount()
  for (const stretch of stretches) {
    const unread = stretch.filter(({ parcelId }) => loading.parcels.get(parcelId)?.whole === false).map(({ parcelId }) => parcelId)
    const byParcel = await loadSightingsOf(session, contents, unread)
    for (const parcelId of unread) setWhole(loading, parcelId, byParcel.get(parcelId) ?? [])
    if (stretches.length === 1) break
    for (const { parcelId } of stretch) {
      for (const held of loading.parcels.get(parcelId)?.seconds.values() ?? []) for (const { sighting } of held) count.add(sighting)
    }
    if (count.atLeast() > entriesMax) {
      loading.overfull.add(joinKey(parcelIds))
      return
    }
  }
  const answers = Map.groupBy(await loadAnswersOf(session, parcelIds), ({ parcelId }) => parcelId)
  for (const parcelId of parcelIds) change(loading, parcelId, { answers: (answers.get(parcelId) ?? []).map(({ answer }) => answer) })
}

/** Loads what `decide` asked for. */
export async function loadNeeds(source: SnapshotSource, loaded: StoredPart, needs: Needs, nowMs: number): Promise<StoredPart> {
  const { identifiers } = loaded
  const parcels = new Map(loaded.parcels)
  const [pushes, unrecorded, overfull] = [new Map(loaded.pushes), new Set(loaded.unrecorded), new Set(loaded.overfull)]
  const loading: Loading = { source, nowMs, parcels, pushes, unrecorded, overfull }
  const { session } = source
  for (const [parcelId, second] of needs.seconds) await loadSecond(loading, parcelId, second)
  for (const parcelId of needs.whole) await loadWhole(loading, parcelId)
  for (const parcelIds of needs.joins) await loadJoin(loading, parcelIds)
  for (const parcelId of needs.answers) change(loading, parcelId, { answers: await loadAnswers(session, parcelId) })
  for (const parcelId of needs.orders) change(loading, parcelId, { order: await loadOrder(session, parcelId) })
  for (const parcelId of needs.pollable) {
    change(loading, parcelId, { pollable: (await pollableIdentifiers(session, parcelId, nowMs)).length > 0 })
  }
  for (const parcelId of needs.bodies) change(loading, parcelId, { bodies: await loadBodies(session, parcelId) })
  for (const digest of needs.unrecorded) await loadUnrecorded(loading, digest)
  return { identifiers, parcels, pushes, unrecorded, overfull }
}

/** How many pushes one read returns. */
const EVENTS_PER_READ = 100

async function loadBodies(session: Session, parcelId: number): Promise<readonly KeptBody[]> {
  const bodies: KeptBody[] = []
  let after: Uint8Array | null = new Uint8Array()
  while (after !== null) {
    const kept: Awaited<ReturnType<typeof listPushes>> = await listPushes(session, { parcelId, after, limit: EVENTS_PER_READ })
    for (const { inboxId, body } of kept) bodies.push({ inboxId, body })
    after = kept.length < EVENTS_PER_READ ? null : (kept.at(-1)?.digest ?? null)
  }
  return bodies
}

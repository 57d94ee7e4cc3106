import { createEntryCount } from '../../../domain/history/count-entries.ts'
import type { IdentifierState, ParcelState } from '../../../domain/history/parcel-state.ts'
import { componentsOf, type RecordBatch } from '../../../domain/history/record-batch.ts'
import type { Incoming } from '../../../domain/history/recording.ts'
import type { KeptSighting } from '../../../domain/history/sightings.ts'
import { joinKey, type KnownParcel, type Needs, NO_PARCEL, pushKey, type Snapshot } from '../../../domain/history/snapshot.ts'
import { parcelNamed, pushedBy, secondOf, stretchesOf } from '../../history/batch-names.ts'
import { findParcels } from './postgres-parcels.ts'
import { type BatchSource, findTwins, readAnswers, readBodies, readOrders, readPollable, readSeconds, readWhole } from './read-batch.ts'

/** What the store holds of a batch. */
export type StoredBatch = Pick<Snapshot, 'parcels' | 'pushes' | 'unrecorded' | 'overfull'>

/** What is to be read, in sets. */
interface Wanted {
  readonly pushes: { readonly parcelId: number; readonly digest: string }[]
  readonly seconds: { readonly parcelId: number; readonly second: number }[]
  readonly whole: number[]
  readonly joins: (readonly number[])[]
  readonly unrecorded: string[]
}

interface Loading extends BatchSource {
  readonly nowMs: number
  readonly parcels: Map<number, KnownParcel>
  readonly pushes: Map<string, number>
  readonly unrecorded: Set<string>
  readonly overfull: Set<string>
}

/**
 * Loads what the parcels hold that a batch names, all of it in one round trip, and in one more what is to be joined. The parcels are locked first, so
 * that what is read of them stays true.
 */
export async function loadBatch(
  source: BatchSource,
  batch: RecordBatch,
  identifiers: ReadonlyMap<string, IdentifierState>,
): Promise<StoredBatch> {
  const loading = startLoading(source, batch.nowMs)
  const wanted = wantedOf(batch, identifiers)
  const parcelIds = [...new Set([...identifiers.values()].map(({ parcelId }) => parcelId))]
  const single = parcelIds.filter((parcelId) => !wanted.joins.some((ids) => ids.includes(parcelId)))
  const [states, sightings, wholes, answers, pollable] = await Promise.all([
    parcelIds.length === 0 ? [] : findParcels(source.session, parcelIds),
    readSeconds(source, wanted.seconds),
    readWhole(source, wanted.whole),
    readAnswers(source.session, single),
    readPollable(source.session, parcelIds, batch.nowMs),
    readPushes(loading, wanted),
  ])
  for (const state of states) {
    const { parcelId } = state
    loading.parcels.set(parcelId, {
      state,
      seconds: sightings.get(parcelId) ?? new Map(),
      whole: false,
      answers: single.includes(parcelId) ? (answers.get(parcelId) ?? []) : null,
      order: null,
      // Only of a parcel that the carrier did not know does it matter.
      pollable: state.stopped === 'unknown' ? pollable.has(parcelId) : null,
      bodies: null,
    })
  }
  for (const parcelId of wanted.whole) setWhole(loading, parcelId, wholes.get(parcelId) ?? [])
  await loadJoins(loading, wanted.joins)
  return loading
}

function startLoading(source: BatchSource, nowMs: number): Loading {
  return { ...source, nowMs, parcels: new Map(), pushes: new Map(), unrecorded: new Set(), overfull: new Set() }
}

function wantedOf({ observations, digests }: RecordBatch, identifiers: ReadonlyMap<string, IdentifierState>): Wanted {
  const wanted: Wanted = { pushes: [], seconds: [], whole: [], joins: [], unrecorded: [] }
  for (const [at, incoming] of observations.entries()) {
    if (incoming.kind === 'poll') continue
    const observation = pushedBy(incoming)
    const digest = digests[at] ?? ''
    const parcelId = observation === null ? null : parcelNamed(observation, identifiers)
    if (observation === null) wanted.unrecorded.push(digest)
    else if (parcelId !== null) wanted.pushes.push({ parcelId, digest })
  }
  for (const { parcels, members, hasPoll } of componentsOf(observations, identifiers)) {
    const [only] = parcels
    if (only === undefined) continue
    if (parcels.size > 1) wanted.joins.push([...parcels].sort((a, b) => a - b))
    else if (hasPoll) wanted.whole.push(only)
    else for (const second of secondsOf(observations, members)) wanted.seconds.push({ parcelId: only, second })
  }
  return wanted
}

function secondsOf(observations: readonly Incoming[], members: readonly number[]): ReadonlySet<number> {
  const seconds = new Set<number>()
  for (const at of members) {
    const incoming = observations[at]
    const observation = incoming === undefined ? null : pushedBy(incoming)
    if (observation !== null) seconds.add(secondOf(observation.sighting.instant.atMs))
  }
  return seconds
}

/** Which of the pushes are kept already. */
async function readPushes(loading: Loading, wanted: Pick<Wanted, 'pushes' | 'unrecorded'>): Promise<void> {
  const asked = [...wanted.pushes, ...wanted.unrecorded.map((digest) => ({ parcelId: NO_PARCEL, digest }))]
  for (const digest of wanted.unrecorded) loading.unrecorded.add(digest)
  if (asked.length === 0) return
  const digests = asked.map(({ digest }) => Buffer.from(digest, 'binary'))
  for (const { id, parcel_id: parcelId, nth } of await loading.session.all(findTwins, {
    parcelIds: asked.map((one) => one.parcelId),
    digests,
  })) {
    loading.pushes.set(pushKey(parcelId, asked[nth - 1]?.digest ?? ''), id)
  }
}

function setWhole(loading: Loading, parcelId: number, sightings: readonly KeptSighting[]): void {
  change(loading, parcelId, { seconds: Map.groupBy(sightings, ({ sighting }) => secondOf(sighting.instant.atMs)), whole: true })
}

function change({ parcels }: Loading, parcelId: number, loaded: Partial<KnownParcel>): void {
  const parcel = parcels.get(parcelId)
  if (parcel !== undefined) parcels.set(parcelId, { ...parcel, ...loaded })
}

/** Parcels that are to be joined, whole, or as much of them as shows that they do not fit into one. Most sets are small, and are read together. */
async function loadJoins(loading: Loading, joins: readonly (readonly number[])[]): Promise<void> {
  const small = joins.filter((parcelIds) => stretchesOf(statesOf(loading, parcelIds)).stretches.length === 1)
  await readJoined(loading, small.flat())
  for (const parcelIds of joins) {
    if (!small.includes(parcelIds) && !(await loadInStretches(loading, parcelIds))) loading.overfull.add(joinKey(parcelIds))
  }
  const answers = await readAnswers(loading.session, joins.flat())
  for (const parcelId of joins.flat()) change(loading, parcelId, { answers: answers.get(parcelId) ?? [] })
}

function statesOf({ parcels }: Loading, parcelIds: readonly number[]): readonly ParcelState[] {
  return parcelIds.flatMap((parcelId) => parcels.get(parcelId)?.state ?? [])
}

/** False: they hold more than fits into one. */
async function loadInStretches(loading: Loading, parcelIds: readonly number[]): Promise<boolean> {
  const { stretches, entriesMax } = stretchesOf(statesOf(loading, parcelIds))
  const count = createEntryCount()
  for (const stretch of stretches) {
    await readJoined(
      loading,
      stretch.map(({ parcelId }) => parcelId),
    )
    for (const { parcelId } of stretch) {
      for (const held of loading.parcels.get(parcelId)?.seconds.values() ?? []) for (const { sighting } of held) count.add(sighting)
    }
    if (count.atLeast() > entriesMax) return false
  }
  return true
}

async function readJoined(loading: Loading, parcelIds: readonly number[]): Promise<void> {
  const unread = parcelIds.filter((parcelId) => loading.parcels.get(parcelId)?.whole === false)
  const wholes = await readWhole(loading, unread)
  for (const parcelId of unread) setWhole(loading, parcelId, wholes.get(parcelId) ?? [])
}

/** Adds what deciding showed to be needed. */
export async function loadNeeded(source: BatchSource, loaded: StoredBatch, needs: Needs, nowMs: number): Promise<StoredBatch> {
  const loading: Loading = {
    ...source,
    nowMs,
    parcels: new Map(loaded.parcels),
    pushes: new Map(loaded.pushes),
    unrecorded: new Set(loaded.unrecorded),
    overfull: new Set(loaded.overfull),
  }
  const [seconds, wholes, answers, orders, pollable, bodies] = await Promise.all([
    readSeconds(
      source,
      needs.seconds.map(([parcelId, second]) => ({ parcelId, second })),
    ),
    readWhole(source, needs.whole),
    readAnswers(source.session, needs.answers),
    readOrders(source.session, needs.orders),
    readPollable(source.session, needs.pollable, nowMs),
    Promise.all([...needs.bodies].map(async (parcelId) => ({ parcelId, bodies: await readBodies(source.session, parcelId) }))),
    readPushes(loading, { pushes: [], unrecorded: [...needs.unrecorded] }),
  ])
  for (const [parcelId, read] of seconds) {
    change(loading, parcelId, { seconds: new Map([...(loading.parcels.get(parcelId)?.seconds ?? []), ...read]) })
  }
  for (const parcelId of needs.whole) setWhole(loading, parcelId, wholes.get(parcelId) ?? [])
  await loadJoins(loading, needs.joins)
  for (const parcelId of needs.answers) change(loading, parcelId, { answers: answers.get(parcelId) ?? [] })
  for (const parcelId of needs.orders) change(loading, parcelId, { order: orders.get(parcelId) ?? [] })
  for (const parcelId of needs.pollable) change(loading, parcelId, { pollable: pollable.has(parcelId) })
  for (const { parcelId, bodies: read } of bodies) change(loading, parcelId, { bodies: read })
  return loading
}

import type { FeedEvent } from '../delivery/feed-entry.ts'
import { allSightings, answersOf, type BatchState, draftOf, nextSequence, type ParcelDraft } from './batch-state.ts'
import { deriveEntries } from './history.ts'
import { answerId, type KeptAnswer, keepAnswers } from './kept-answers.ts'
import type { PollObservation, PushObservation } from './observation.ts'
import { countsFromMs, type LatestEntry, type ParcelJoin, type ParcelState } from './parcel-state.ts'
import { ENTRIES_MAX } from './pull-response.ts'
import { mergeSightings, sightingsOf, uniteSightings } from './sightings.ts'
import { joinKey, secondOf } from './snapshot.ts'

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

import { createEntryCount } from '../../domain/history/count-entries.ts'
import { deriveEntries } from '../../domain/history/history.ts'
import type { PollObservation, PushObservation } from '../../domain/history/observation.ts'
import type { JoinedParcel, ParcelState } from '../../domain/history/parcel-state.ts'
import { ENTRIES_MAX } from '../../domain/history/pull-response.ts'
import { type KeptSighting, mergeSightings, sightingsOf, uniteSightings } from '../../domain/history/sightings.ts'
import type { WriteTx } from '../write-store.ts'

/** The parcel that goes on. */
export interface Joined {
  readonly parcel: ParcelState
  /** All that is kept of it now. */
  readonly sightings: readonly KeptSighting[]
}

/**
 * Makes one parcel of several that proved to be one (DOMAIN 1.4); the oldest, which goes on, is the first. Each is loaded once, and in sets;
 * nothing is written before it is certain that they fit into one. Null: they do not (DOMAIN 1.6).
 */
export async function joinParcels(
  tx: WriteTx,
  parcelIds: readonly number[],
  observation: PushObservation | PollObservation,
  nowMs: number,
): Promise<Joined | null> {
  const states = await tx.loadParcels(parcelIds)
  // Whoever holds more than a parcel may, from before that was so, may go on holding it.
  const entriesMax = states.reduce((most, { entryCount }) => Math.max(most, entryCount), ENTRIES_MAX)
  const held = await loadHeld(tx, states, entriesMax)
  if (held === null) return null
  const { kept, shared } = uniteSightings(held.map(({ sightings }) => sightings))
  const entries = deriveEntries(mergeSightings(kept, sightingsOf(observation), () => 0).kept).length
  if (entries > entriesMax || (entries > ENTRIES_MAX && entries > deriveEntries(kept).length)) return null

  const [survivor, ...others] = held
  if (survivor === undefined) throw new Error('none of the parcels to be joined is in the store')
  const parcel = states.reduce(joinStates)
  const joins = others.map((other) => ({ ...other, sequence: tx.nextSequence() }))
  await tx.joinParcels({ survivor, others: joins, parcel, shared, nowMs })
  for (const { sequence, state } of joins) {
    tx.appendFeed({ sequence, kind: 'join', parcelId: parcel.parcelId, entry: state.parcelId, carries: null })
  }
  return { parcel, sightings: kept }
}

/** What each of them holds, in their order; null, as soon as that is certain: too much for one. */
async function loadHeld(tx: WriteTx, states: readonly ParcelState[], entriesMax: number): Promise<readonly JoinedParcel[] | null> {
  const held: JoinedParcel[] = []
  const stretches = stretchesOf(states, entriesMax)
  const count = createEntryCount()
  for (const stretch of stretches) {
    const byParcel = await tx.loadSightingsOf(stretch.map(({ parcelId }) => parcelId))
    for (const state of stretch) held.push({ state, sightings: byParcel.get(state.parcelId) ?? [] })
    if (stretches.length === 1) break
    for (const sightings of byParcel.values()) for (const { sighting } of sightings) count.add(sighting)
    if (count.atLeast() > entriesMax) return null
  }
  return held
}

/** Parcels that are loaded together: as many as hold, if they differ in all of them, more entries than one parcel may. */
function stretchesOf(states: readonly ParcelState[], entriesMax: number): readonly (readonly ParcelState[])[] {
  const stretches: ParcelState[][] = []
  let room = 0
  for (const state of states) {
    const stretch = stretches.at(-1)
    if (stretch === undefined || room < 0) {
      stretches.push([state])
      room = entriesMax
    } else stretch.push(state)
    room -= state.entryCount
  }
  return stretches
}

function joinStates(survivor: ParcelState, other: ParcelState): ParcelState {
  return {
    ...survivor,
    watchedAtMs: least(survivor.watchedAtMs, other.watchedAtMs),
    firstPushedAtMs: least(survivor.firstPushedAtMs, other.firstPushedAtMs),
    activatedAtMs: Math.max(survivor.activatedAtMs, other.activatedAtMs),
    lastSeenAtMs: greatest(survivor.lastSeenAtMs, other.lastSeenAtMs),
    checkedAtMs: greatest(survivor.checkedAtMs, other.checkedAtMs),
    full: survivor.full || other.full,
  }
}

function least(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

function greatest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}

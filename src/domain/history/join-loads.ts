import { createEntryCount, type EntryCount } from './count-entries.ts'
import type { ParcelState } from './parcel-state.ts'
import { ENTRIES_MAX } from './pull-response.ts'
import { joinKey, type Needs, onlyNeeds, type StoredSnapshot } from './snapshot.ts'

/** A set of parcels to be joined, while it is loaded. */
export interface JoinLoad {
  readonly key: string
  /** The stretches that are left to load, in order. The parcels of a stretch are loaded together. */
  readonly stretches: readonly (readonly number[])[]
  /** The maximum of entries of the joined parcel. */
  readonly entriesMax: number
  /** Counts the entries of the set. Null: there is only one stretch, so counting could not save the load of another. */
  readonly count: EntryCount | null
}

/** Begins to load sets of parcels. Their states are loaded already. */
export function startJoins(joins: readonly (readonly number[])[], { parcels }: StoredSnapshot): readonly JoinLoad[] {
  return joins.map((parcelIds) => {
    const states = parcelIds.flatMap((parcelId) => parcels.get(parcelId)?.state ?? [])
    const entriesMax = states.reduce((most, { entryCount }) => Math.max(most, entryCount), ENTRIES_MAX)
    const stretches = stretchesOf(states, entriesMax)
    return { key: joinKey(parcelIds), stretches, entriesMax, count: stretches.length > 1 ? createEntryCount() : null }
  })
}

/** Ends a stretch with the parcel that brings its entries above the limit, so that hardly more is loaded than one parcel may have. */
function stretchesOf(states: readonly ParcelState[], entriesMax: number): readonly (readonly number[])[] {
  const stretches: number[][] = []
  let room = 0
  for (const { parcelId, entryCount } of states) {
    const stretch = stretches.at(-1)
    if (stretch === undefined || room < 0) {
      stretches.push([parcelId])
      room = entriesMax
    } else stretch.push(parcelId)
    room -= entryCount
  }
  return stretches
}

/** The needs of the next stretch of each join. */
export function joinNeeds(joins: readonly JoinLoad[], { parcels }: StoredSnapshot): Needs {
  const next = joins.flatMap(({ stretches }) => stretches[0] ?? [])
  return onlyNeeds({ whole: next.filter((parcelId) => parcels.get(parcelId)?.whole === false), answers: next })
}

/**
 * Continues after the needs of `joinNeeds` were loaded. If the loaded parcels of a set already have too many entries for one parcel, marks
 * the set as overfull and does not load the rest.
 */
export function continueJoins(
  joins: readonly JoinLoad[],
  snapshot: StoredSnapshot,
): { readonly joins: readonly JoinLoad[]; readonly snapshot: StoredSnapshot } {
  const overfull = new Set(snapshot.overfull)
  const left: JoinLoad[] = []
  for (const { key, stretches, entriesMax, count } of joins) {
    const [loaded = [], ...rest] = stretches
    if (count !== null) countEntries(count, loaded, snapshot)
    if (count !== null && count.atLeast() > entriesMax) overfull.add(key)
    else if (rest.length > 0) left.push({ key, stretches: rest, entriesMax, count })
  }
  return { joins: left, snapshot: { ...snapshot, overfull } }
}

function countEntries(count: EntryCount, parcelIds: readonly number[], { parcels }: StoredSnapshot): void {
  for (const parcelId of parcelIds) {
    for (const held of parcels.get(parcelId)?.seconds.values() ?? []) for (const { sighting } of held) count.add(sighting)
  }
}

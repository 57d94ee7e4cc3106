import type { ParcelState } from './parcel-state.ts'
import { ENTRIES_MAX } from './pull-response.ts'
import { joinKey, type Needs, onlyNeeds, type StoredSnapshot } from './snapshot.ts'
import { groupOf, keyOf, type Sighting } from './status-entry.ts'

/** How far a set of parcels that are to be joined is loaded. */
export interface JoinLoad {
  readonly key: string
  /** The parts that are still to be loaded, in order. The parcels of a part are loaded together. */
  readonly stretches: readonly (readonly number[])[]
  /** The greatest number of entries that the joined parcel may have. */
  readonly entriesMax: number
  /** Counts the loaded entries, to stop loading when there are too many. Null: the set has a single part, after which loading ends anyway. */
  readonly count: EntryCount | null
}

/** Divides each set of parcels into parts to load. Requires the states of the parcels in the snapshot. */
export function startJoins(joins: readonly (readonly number[])[], { parcels }: StoredSnapshot): readonly JoinLoad[] {
  return joins.map((parcelIds) => {
    const states = parcelIds.flatMap((parcelId) => parcels.get(parcelId)?.state ?? [])
    const entriesMax = states.reduce((most, { entryCount }) => Math.max(most, entryCount), ENTRIES_MAX)
    const stretches = stretchesOf(states, entriesMax)
    return { key: joinKey(parcelIds), stretches, entriesMax, count: stretches.length > 1 ? createEntryCount() : null }
  })
}

/** A part ends with the parcel whose entries bring it above the limit. If the join turns out to be too large, only that part was loaded in vain. */
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

export function joinNeeds(joins: readonly JoinLoad[], { parcels }: StoredSnapshot): Needs {
  const next = joins.flatMap(({ stretches }) => stretches[0] ?? [])
  return onlyNeeds({ whole: next.filter((parcelId) => parcels.get(parcelId)?.whole === false), answers: next })
}

/**
 * Goes on to the next parts after the data of `joinNeeds` was loaded. If the loaded parcels of a set already have too many entries for one
 * parcel, marks the set as overfull, and the rest of it is not loaded.
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

/** Counts the least number of entries that sightings can form, without deriving the entries. More sightings never lower this number. */
interface EntryCount {
  add(sighting: Sighting): void
  /** Returns the least number of entries that the sightings added so far can form. */
  atLeast(): number
}

interface Group {
  readonly instants: Set<number>
  readonly locations: Set<string>
  readonly instantsAtLocations: Set<string>
}

/**
 * An entry never has members with different milliseconds or with different locations (DOMAIN 2.2, 2.3). So a group has at least as many
 * entries as it has different milliseconds, different locations, or different pairs of both.
 */
export function createEntryCount(): EntryCount {
  const groups = new Map<string, Group>()
  let count = 0
  return {
    add(sighting) {
      const id = groupOf(sighting)
      const known = groups.get(id)
      const group = known ?? { instants: new Set(), locations: new Set(), instantsAtLocations: new Set() }
      if (known === undefined) groups.set(id, group)
      const before = known === undefined ? 0 : entriesOf(group)
      const { atMs, whole, location } = keyOf(sighting)
      if (!whole) group.instants.add(atMs)
      if (location !== '') group.locations.add(location)
      if (!whole && location !== '') group.instantsAtLocations.add(`${atMs} ${location}`)
      count += entriesOf(group) - before
    },
    atLeast: () => count,
  }
}

function entriesOf({ instants, locations, instantsAtLocations }: Group): number {
  return Math.max(1, instants.size, locations.size, instantsAtLocations.size)
}

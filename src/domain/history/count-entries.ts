import { groupOf, keyOf, type Sighting } from './status-entry.ts'

/** Counts entries without deriving them, and is sure of it: sightings seen later only add to the count. */
export interface EntryCount {
  add(sighting: Sighting): void
  /** So many entries there are at least. */
  atLeast(): number
}

interface Group {
  readonly instants: Set<number>
  readonly places: Set<string>
  readonly instantsAtPlaces: Set<string>
}

/**
 * The members of an entry are of one group, and no two of them have different milliseconds or different places (DOMAIN 2.2, 2.3): so a group
 * has as many entries as it has milliseconds, places, or both together.
 */
export function createEntryCount(): EntryCount {
  const groups = new Map<string, Group>()
  let count = 0
  return {
    add(sighting) {
      const id = groupOf(sighting)
      const known = groups.get(id)
      const group = known ?? { instants: new Set(), places: new Set(), instantsAtPlaces: new Set() }
      if (known === undefined) groups.set(id, group)
      const before = known === undefined ? 0 : entriesOf(group)
      const { atMs, whole, location } = keyOf(sighting)
      if (!whole) group.instants.add(atMs)
      if (location !== '') group.places.add(location)
      if (!whole && location !== '') group.instantsAtPlaces.add(`${atMs} ${location}`)
      count += entriesOf(group) - before
    },
    atLeast: () => count,
  }
}

function entriesOf({ instants, places, instantsAtPlaces }: Group): number {
  return Math.max(1, instants.size, places.size, instantsAtPlaces.size)
}

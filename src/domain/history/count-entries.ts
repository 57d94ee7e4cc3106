import { groupOf, keyOf, type Sighting } from './status-entry.ts'

/** Counts the least number of entries that sightings can form, without deriving the entries. More sightings never lower this number. */
export interface EntryCount {
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

import type { Tombstones } from './erased.ts'
import { groupOf, identifiersOf, keyOf, type PollObservation, type PushObservation, type Sighting } from './observation.ts'
import type { IdentifierState, ParcelState } from './parcel-state.ts'
import { ENTRIES_MAX } from './pull-response.ts'
import type { Incoming, RecordBatch } from './recording.ts'
import {
  type BatchNeeds,
  joinKey,
  type Needs,
  NO_PARCEL,
  onlyNeeds,
  pushKey,
  type SecondNeed,
  type StoredSnapshot,
  secondOf,
} from './snapshot.ts'

/** Returns every identifier that the observations name, each once. */
export function namesOf(observations: readonly Incoming[]): readonly string[] {
  const values = new Set<string>()
  for (const incoming of observations) {
    const observation = observationOf(incoming)
    if (observation !== null) for (const value of identifiersOf(observation)) values.add(value)
  }
  return [...values]
}

/** Null: the push is not a valid event. */
function observationOf(incoming: Incoming): PushObservation | PollObservation | null {
  if (incoming.kind === 'poll') return incoming.observation
  return incoming.reading.ok ? incoming.reading.observation : null
}

/**
 * Returns the data that a batch is likely to need. Only the identifiers are loaded at this point, so this may be more than the batch needs.
 * But a database on the network answers one large query faster than two small ones.
 */
export function firstNeeds(
  { observations, digests }: RecordBatch,
  { identifiers, tombstones, endpoints }: Pick<StoredSnapshot, 'identifiers' | 'tombstones' | 'endpoints'>,
): BatchNeeds {
  const pushes: BatchNeeds['pushes'][number][] = []
  for (const [at, incoming] of observations.entries()) {
    if (incoming.kind === 'poll') continue
    const parcelId = incoming.reading.ok ? parcelNamed(incoming.reading.observation, identifiers, tombstones) : NO_PARCEL
    if (parcelId !== null) pushes.push({ parcelId, digest: digests[at] ?? '' })
  }
  const parcels: number[] = []
  const [joins, single, whole]: [(readonly number[])[], number[], number[]] = [[], [], []]
  const seconds: SecondNeed[] = []
  for (const component of componentsOf(observations, identifiers)) {
    const [only] = component.parcels
    if (only === undefined) continue
    parcels.push(...component.parcels)
    if (component.parcels.size > 1) {
      joins.push([...component.parcels].sort((a, b) => a - b))
      continue
    }
    single.push(only)
    if (component.hasPoll) whole.push(only)
    else seconds.push(...secondsOf(only, component.members, observations, digests))
  }
  // Nobody else needs what is said of orders.
  const contexts = endpoints.some(({ endpoint }) => endpoint.filters.label !== null) ? parcels : []
  return { parcels, pushes, seconds, whole, joins, answers: single, orders: [], bodies: [], contexts }
}

/** Returns the only parcel that may already have this push; null: the identifiers of the push are unknown or belong to several parcels. */
function parcelNamed(
  { trackingIds }: PushObservation,
  identifiers: ReadonlyMap<string, IdentifierState>,
  tombstones: Tombstones,
): number | null {
  // Erased identifiers are ignored: `decide` removes them from the push.
  const [parcelId, ...more] = new Set(
    trackingIds
      .map((value) => identifiers.get(value)?.parcelId ?? (tombstones.has(value) ? undefined : null))
      .filter((one) => one !== undefined),
  )
  return more.length === 0 ? (parcelId ?? null) : null
}

function secondsOf(
  parcelId: number,
  members: readonly number[],
  observations: RecordBatch['observations'],
  digests: RecordBatch['digests'],
): Iterable<SecondNeed> {
  const needs = new Map<number, SecondNeed & { readonly digests: string[] }>()
  for (const at of members) {
    const incoming = observations[at]
    if (incoming?.kind !== 'push' || !incoming.reading.ok) continue
    const second = secondOf(incoming.reading.observation.sighting.instant.atMs)
    const need = needs.get(second)
    if (need === undefined) needs.set(second, { parcelId, second, digests: [digests[at] ?? ''] })
    else need.digests.push(digests[at] ?? '')
  }
  return needs.values()
}

/**
 * Drops the needs that are not certain, now that the parcels and pushes are loaded. If `decide` needs dropped data after all, it asks for it.
 * So this saves reads only in a store where one more query costs little.
 */
export function certainNeeds(needs: Needs, parcels: readonly ParcelState[], pushes: ReadonlyMap<string, number>): Needs {
  const states = new Map(parcels.map((state) => [state.parcelId, state]))
  return {
    ...needs,
    seconds: needs.seconds.filter(({ parcelId, second, digests }) => {
      const latest = states.get(parcelId)?.latest ?? null
      // No sighting is stored after the latest entry, and a duplicate push needs no sightings, because it changes nothing.
      return latest !== null && second <= secondOf(latest.atMs) && digests.some((digest) => !pushes.has(pushKey(parcelId, digest)))
    }),
    answers: needs.whole,
  }
}

/** Observations of a batch that are, or may turn out to be, about the same parcel. */
interface Component {
  /** The stored parcels whose identifiers the observations name. */
  readonly parcels: Set<number>
  /** The indexes of the observations in the batch. */
  readonly members: number[]
  /**
   * The ids of the stored parcels that the observations name, and the named identifiers that have no parcel. Observations with a key in
   * common belong to the same component.
   */
  readonly keys: (string | number)[]
  hasPoll: boolean
}

/** Groups the observations of a batch so that two groups never name the same parcel, even after joins. */
function componentsOf(observations: readonly Incoming[], identifiers: ReadonlyMap<string, IdentifierState>): Iterable<Component> {
  const byKey = new Map<string | number, Component>()
  for (const [at, incoming] of observations.entries()) {
    const observation = observationOf(incoming)
    if (observation === null) continue
    let component: Component | undefined
    for (const value of identifiersOf(observation)) {
      const parcelId = identifiers.get(value)?.parcelId
      const key = parcelId ?? value
      const found = byKey.get(key) ?? {
        parcels: new Set(parcelId === undefined ? [] : [parcelId]),
        members: [],
        keys: [key],
        hasPoll: false,
      }
      if (component === undefined || component === found) component = found
      else absorb(component, found, byKey)
      byKey.set(key, component)
    }
    if (component === undefined) continue
    component.members.push(at)
    if (observation.kind === 'poll') component.hasPoll = true
  }
  return new Set(byKey.values())
}

function absorb(into: Component, from: Component, byKey: Map<string | number, Component>): void {
  for (const parcelId of from.parcels) into.parcels.add(parcelId)
  for (const key of from.keys) {
    byKey.set(key, into)
    into.keys.push(key)
  }
  into.members.push(...from.members)
  into.hasPoll ||= from.hasPoll
}

/** How far a set of parcels that are to be joined is loaded. */
interface JoinLoad {
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

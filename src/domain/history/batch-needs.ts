import type { Tombstones } from './erased.ts'
import { identifiersOf, type PollObservation, type PushObservation } from './observation.ts'
import type { IdentifierState, ParcelState } from './parcel-state.ts'
import type { RecordBatch } from './record-batch.ts'
import type { Incoming } from './recording.ts'
import { type BatchNeeds, type Needs, NO_PARCEL, pushKey, type SecondNeed, type StoredSnapshot, secondOf } from './snapshot.ts'

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
  { identifiers, tombstones }: Pick<StoredSnapshot, 'identifiers' | 'tombstones'>,
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
  return { parcels, pushes, seconds, whole, joins, answers: single, orders: [], bodies: [] }
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

import { identifiersOf, type PushObservation } from '../../domain/history/observation.ts'
import type { IdentifierState, ParcelState } from '../../domain/history/parcel-state.ts'
import { ENTRIES_MAX } from '../../domain/history/pull-response.ts'
import type { Incoming } from '../../domain/history/recording.ts'

/** Returns every identifier that the observations name, without duplicates. */
export function namesOf(observations: readonly Incoming[]): readonly string[] {
  const values = new Set<string>()
  for (const incoming of observations) {
    const observation = incoming.kind === 'poll' ? incoming.observation : pushedBy(incoming)
    if (observation !== null) for (const value of identifiersOf(observation)) values.add(value)
  }
  return [...values]
}

/** Returns a push's observation; null for a poll and for a push that is not a valid event. */
export function pushedBy(incoming: Incoming): PushObservation | null {
  return incoming.kind === 'push' && incoming.reading.ok ? incoming.reading.observation : null
}

/** Returns the only parcel that can hold a duplicate of the push; null if its identifiers are unknown or belong to several parcels. */
export function parcelNamed({ trackingIds }: PushObservation, identifiers: ReadonlyMap<string, IdentifierState>): number | null {
  const parcelId = identifiers.get(trackingIds[0] ?? '')?.parcelId
  return parcelId !== undefined && trackingIds.every((value) => identifiers.get(value)?.parcelId === parcelId) ? parcelId : null
}

export function secondOf(atMs: number): number {
  return Math.floor(atMs / 1000)
}

/** Parcels to be joined, grouped in the order in which they are loaded. */
export interface Stretches {
  /** Each stretch is loaded together. It ends with the parcel that may push its entries above `entriesMax`. */
  readonly stretches: readonly (readonly ParcelState[])[]
  /** The maximum of entries of the joined parcel. */
  readonly entriesMax: number
}

export function stretchesOf(states: readonly ParcelState[]): Stretches {
  const entriesMax = states.reduce((most, { entryCount }) => Math.max(most, entryCount), ENTRIES_MAX)
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
  return { stretches, entriesMax }
}

import { identifiersOf, type PushObservation } from '../../domain/history/observation.ts'
import type { IdentifierState, ParcelState } from '../../domain/history/parcel-state.ts'
import { ENTRIES_MAX } from '../../domain/history/pull-response.ts'
import type { Incoming } from '../../domain/history/recording.ts'

/** Every identifier that observations name, each once. */
export function namesOf(observations: readonly Incoming[]): readonly string[] {
  const values = new Set<string>()
  for (const incoming of observations) {
    const observation = incoming.kind === 'poll' ? incoming.observation : pushedBy(incoming)
    if (observation !== null) for (const value of identifiersOf(observation)) values.add(value)
  }
  return [...values]
}

/** What a push says; null: it is a poll, or a push that is no valid event. */
export function pushedBy(incoming: Incoming): PushObservation | null {
  return incoming.kind === 'push' && incoming.reading.ok ? incoming.reading.observation : null
}

/** The one parcel that a push of equal bytes can be kept of; null: what it names is not known, or not of one parcel, so that there is none. */
export function parcelNamed({ trackingIds }: PushObservation, identifiers: ReadonlyMap<string, IdentifierState>): number | null {
  const parcelId = identifiers.get(trackingIds[0] ?? '')?.parcelId
  return parcelId !== undefined && trackingIds.every((value) => identifiers.get(value)?.parcelId === parcelId) ? parcelId : null
}

export function secondOf(atMs: number): number {
  return Math.floor(atMs / 1000)
}

/** Parcels to be joined, in the order in which they are loaded. */
export interface Stretches {
  /** Those of one are loaded together: as many as hold, if they differ in all of them, more entries than one parcel may. */
  readonly stretches: readonly (readonly ParcelState[])[]
  /** How many entries they may hold as one. */
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

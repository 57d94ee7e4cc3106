import { hash } from 'node:crypto'
import { identifiersOf } from './observation.ts'
import type { IdentifierState } from './parcel-state.ts'
import type { Incoming } from './recording.ts'

/** Observations that are recorded in one transaction. `nowMs`: epoch milliseconds. */
export interface RecordBatch {
  readonly nowMs: number
  readonly observations: readonly Incoming[]
  /** The digest of each push's body, see `pushDigest`; '' for a poll. */
  readonly digests: readonly string[]
}

/** A batch with the digests of its pushes. */
export function recordBatch(observations: readonly Incoming[], nowMs: number): RecordBatch {
  return { nowMs, observations, digests: observations.map((one) => (one.kind === 'push' ? pushDigest(one.body) : '')) }
}

/**
 * Identifies a pushed body after its bytes are deleted: the first 12 bytes of its SHA-256, as Latin-1 text, compared only within a parcel
 * (DOMAIN 5.4).
 */
function pushDigest(body: Uint8Array): string {
  // As text, because the platform takes three times as long to return a buffer.
  return hash('sha256', body, 'binary').slice(0, 12)
}

/** Observations of a batch that are, or may prove to be, about one parcel. */
export interface Component {
  /** The ids of stored parcels that have one of the identifiers they name. */
  readonly parcels: Set<number>
  /** Indexes into the batch. */
  readonly members: number[]
  readonly hasPoll: boolean
}

interface Growing {
  readonly parcels: Set<number>
  readonly members: number[]
  /** What leads to it: the id of a stored parcel, or an identifier that no parcel has yet. */
  readonly keys: (string | number)[]
  hasPoll: boolean
}

/** Groups a batch by the identifiers its observations name. Two groups never share a parcel, whatever is decided. */
export function componentsOf(observations: readonly Incoming[], identifiers: ReadonlyMap<string, IdentifierState>): readonly Component[] {
  const byKey = new Map<string | number, Growing>()
  for (const [at, incoming] of observations.entries()) {
    const observation = incoming.kind === 'poll' ? incoming.observation : incoming.reading.ok ? incoming.reading.observation : null
    if (observation === null) continue
    let component: Growing | undefined
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
  return [...new Set(byKey.values())]
}

function absorb(into: Growing, from: Growing, byKey: Map<string | number, Growing>): void {
  for (const parcelId of from.parcels) into.parcels.add(parcelId)
  for (const key of from.keys) {
    byKey.set(key, into)
    into.keys.push(key)
  }
  into.members.push(...from.members)
  into.hasPoll ||= from.hasPoll
}

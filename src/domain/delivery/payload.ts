import type { Entry } from '../history/history.ts'
import type { PollObservation, PushObservation } from '../history/observation.ts'
import { type KeptSighting, sightingId, sightingsOf } from '../history/sightings.ts'
import type { KeptBody } from '../history/snapshot.ts'
import { parseWebhookEvent } from '../ingest/parse-push.ts'
import type { Payload } from './feed-entry.ts'

/** What brought an entry, and where the bytes of a push are kept. */
export type ObservationSource =
  | { readonly kind: 'push'; readonly observation: PushObservation; readonly inboxId: number }
  | { readonly kind: 'poll'; readonly observation: PollObservation }

/** What an observation makes of an entry that it is the first to report. */
export function payloadOfNewEntry(source: ObservationSource): Payload {
  if (source.kind === 'push') {
    return { kind: 'push', inboxId: source.inboxId, distributionType: source.observation.sighting.distributionType ?? '' }
  }
  return composedFrom(source)
}

function composedFrom({ observation }: ObservationSource): Payload {
  if (observation.kind === 'push') {
    return { kind: 'composed', trackingIds: observation.trackingIds, distributionType: observation.sighting.distributionType ?? '' }
  }
  const { trackingIds, asked, distributionType } = observation
  return { kind: 'composed', trackingIds: trackingIds.length === 0 ? [asked] : trackingIds, distributionType: distributionType ?? '' }
}

/** The numbers that a parcel's pushes are kept under, the earliest of equal ones, by what they say. */
export type FindPushes = () => ReadonlyMap<string, number>

export interface PayloadRequest {
  readonly entry: Entry
  /** What showed that endpoints are owed the entry. */
  readonly source: ObservationSource
  readonly findPushes: FindPushes
}

export interface PayloadSighting {
  readonly payload: Payload
  /** The sighting of the entry that it reports. */
  readonly sighting: KeptSighting
}

/** What is sent for an entry that was reported before: its own push if its bytes are kept, the earliest of several. */
export function payloadOfKnownEntry({ entry, source, findPushes }: PayloadRequest): PayloadSighting {
  const pushes = entry.members.filter(({ sighting }) => sighting.source === 'push').sort((a, b) => a.sequence - b.sequence)
  const [first] = pushes
  if (first === undefined) return { payload: composedFrom(source), sighting: firstOf(entry) }
  // Most often it is the push that is being recorded.
  if (pushes.length === 1 && isOf(source, first)) return { payload: payloadOfNewEntry(source), sighting: first }
  const found = findPushes()
  for (const sighting of pushes) {
    const inboxId = found.get(sightingId(sighting))
    if (inboxId === undefined) continue
    return { payload: { kind: 'push', inboxId, distributionType: sighting.sighting.distributionType ?? '' }, sighting }
  }
  return { payload: composedFrom(source), sighting: first }
}

/** The sighting that an entry is known by. */
export function firstOf({ members, sequence }: Entry): KeptSighting {
  const first = members.find((kept) => kept.sequence === sequence)
  if (first === undefined) throw new Error('an entry is known by the sequence of none of its sightings')
  return first
}

function isOf({ kind, observation }: ObservationSource, kept: KeptSighting): boolean {
  return kind === 'push' && sightingsOf(observation).some((listed) => sightingId(listed) === sightingId(kept))
}

/** The numbers of kept pushes by what they say; bodies that are no event any more say nothing. */
export function indexPushes(bodies: readonly KeptBody[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (const { inboxId, body } of bodies) {
    const reading = parseWebhookEvent(body, null)
    const [listed] = reading.ok ? sightingsOf(reading.observation) : []
    if (listed === undefined) continue
    const id = sightingId(listed)
    found.set(id, Math.min(inboxId, found.get(id) ?? inboxId))
  }
  return found
}

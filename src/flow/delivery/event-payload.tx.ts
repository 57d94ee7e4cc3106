import type { Payload } from '../../domain/delivery/feed-entry.ts'
import type { Entry } from '../../domain/history/history.ts'
import type { PollObservation, PushObservation } from '../../domain/history/observation.ts'
import { type KeptSighting, sightingId, sightingsOf } from '../../domain/history/sightings.ts'
import { parseWebhookEvent } from '../../domain/ingest/parse-push.ts'
import type { WriteTx } from '../write-store.ts'

/** What brought an entry, and where the bytes of a push are kept. */
export type Source =
  | { readonly kind: 'push'; readonly observation: PushObservation; readonly inboxId: number }
  | { readonly kind: 'poll'; readonly observation: PollObservation }

/** What an observation makes of an entry that it is the first to tell of. */
export function payloadOf(source: Source): Payload {
  if (source.kind === 'push') {
    return { kind: 'push', inboxId: source.inboxId, distributionType: source.observation.sighting.distributionType ?? '' }
  }
  return composedFrom(source)
}

function composedFrom({ observation }: Source): Payload {
  if (observation.kind === 'push') {
    return { kind: 'composed', trackingIds: observation.trackingIds, distributionType: observation.sighting.distributionType ?? '' }
  }
  const { trackingIds, asked, distributionType } = observation
  return { kind: 'composed', trackingIds: trackingIds.length === 0 ? [asked] : trackingIds, distributionType: distributionType ?? '' }
}

/** How many pushes are read in one go. */
const READ_AT_ONCE = 100

export interface Unrelayed {
  readonly entry: Entry
  /** What showed that endpoints are owed the entry. */
  readonly source: Source
  readonly findPushes: FindPushes
}

/** The numbers that a parcel's pushes are kept under, the earliest of equal ones, by what they say; those whose bytes are gone are left out. */
export type FindPushes = () => Promise<ReadonlyMap<string, number>>

export interface PayloadSighting {
  readonly carried: Payload
  /** The sighting of the entry that is told of with it. */
  readonly sighting: KeptSighting
}

/** What is sent for an entry that is not told of for the first time: its own push if one told of it and its bytes are kept, the earliest of several. */
export async function payloadFor({ entry, source, findPushes }: Unrelayed): Promise<PayloadSighting> {
  const pushes = entry.members.filter(({ sighting }) => sighting.source === 'push').sort((a, b) => a.sequence - b.sequence)
  const [first] = pushes
  if (first === undefined) return { carried: composedFrom(source), sighting: firstOf(entry) }
  // Most often it is the push that is being recorded.
  if (pushes.length === 1 && isOf(source, first)) return { carried: payloadOf(source), sighting: first }
  const found = await findPushes()
  for (const sighting of pushes) {
    const inboxId = found.get(sightingId(sighting))
    if (inboxId === undefined) continue
    return { carried: { kind: 'push', inboxId, distributionType: sighting.sighting.distributionType ?? '' }, sighting }
  }
  return { carried: composedFrom(source), sighting: first }
}

/** The sighting that an entry is known by. */
export function firstOf({ members, sequence }: Entry): KeptSighting {
  const first = members.find((kept) => kept.sequence === sequence)
  if (first === undefined) throw new Error('an entry is known by the sequence of none of its sightings')
  return first
}

function isOf({ kind, observation }: Source, kept: KeptSighting): boolean {
  return kind === 'push' && sightingsOf(observation).some((listed) => sightingId(listed) === sightingId(kept))
}

/** Reads them once, however many entries they are looked for. */
export function createFindPushes(tx: WriteTx, parcelId: number): FindPushes {
  let found: ReturnType<FindPushes> | null = null
  return () => {
    found ??= readPushes(tx, parcelId)
    return found
  }
}

async function readPushes(tx: WriteTx, parcelId: number): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>()
  let after: Uint8Array | null = new Uint8Array()
  while (after !== null) {
    const kept: Awaited<ReturnType<WriteTx['listPushes']>> = await tx.listPushes({ parcelId, after, limit: READ_AT_ONCE })
    for (const { inboxId, body } of kept) {
      const id = idOfPush(body)
      if (id !== null) found.set(id, Math.min(inboxId, found.get(id) ?? inboxId))
    }
    after = kept.length < READ_AT_ONCE ? null : (kept.at(-1)?.digest ?? null)
  }
  return found
}

function idOfPush(body: Uint8Array): string | null {
  const reading = parseWebhookEvent(body, null)
  const [listed] = reading.ok ? sightingsOf(reading.observation) : []
  return listed === undefined ? null : sightingId(listed)
}

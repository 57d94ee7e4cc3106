import type { Entry } from '../domain/history.ts'
import type { PollObservation, PushObservation } from '../domain/observation.ts'
import { sightingId, sightingsOf } from '../domain/sightings.ts'
import { parseWebhookEvent } from '../domain/webhook-event.ts'
import type { Carried, WriteTx } from './ports.ts'

/** What brought an entry, and where the bytes of a push are kept. */
export type Source =
  | { readonly kind: 'push'; readonly observation: PushObservation; readonly inboxId: number }
  | { readonly kind: 'poll'; readonly observation: PollObservation }

/** What an observation makes of an entry that it is the first to tell of. */
export function carriedBy(source: Source): Carried {
  if (source.kind === 'push') {
    return { kind: 'push', inboxId: source.inboxId, distributionType: source.observation.sighting.distributionType ?? '' }
  }
  return composedFrom(source)
}

function composedFrom({ observation }: Source): Carried {
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
  readonly parcelId: number
  /** What showed that the entry is one of its own. */
  readonly source: Source
}

/** What is sent for an entry that was part of another: its own push if one told of it and its bytes are kept, the earliest of several. */
export async function carriedFor(tx: WriteTx, { entry, parcelId, source }: Unrelayed): Promise<Carried> {
  const pushes = entry.members.filter(({ sighting }) => sighting.source === 'push').sort((a, b) => a.sequence - b.sequence)
  const wanted = pushes.map(sightingId)
  const found = new Map<string, number>()
  let after: Uint8Array | null = wanted.length === 0 ? null : new Uint8Array()
  while (after !== null) {
    const kept: Awaited<ReturnType<WriteTx['listPushes']>> = await tx.listPushes({ parcelId, after, limit: READ_AT_ONCE })
    for (const { inboxId, body } of kept) {
      const id = idOfPush(body)
      if (id !== null && wanted.includes(id)) found.set(id, Math.min(inboxId, found.get(id) ?? inboxId))
    }
    after = kept.length < READ_AT_ONCE ? null : (kept.at(-1)?.digest ?? null)
  }
  const first = pushes.find((push) => found.has(sightingId(push)))
  const inboxId = first === undefined ? undefined : found.get(sightingId(first))
  if (first === undefined || inboxId === undefined) return composedFrom(source)
  return { kind: 'push', inboxId, distributionType: first.sighting.distributionType ?? '' }
}

function idOfPush(body: Uint8Array): string | null {
  const reading = parseWebhookEvent(body, null)
  const [listed] = reading.ok ? sightingsOf(reading.observation) : []
  return listed === undefined ? null : sightingId(listed)
}

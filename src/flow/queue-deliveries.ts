import { encodeEvent } from '../domain/delivery-request.ts'
import { endpointWants } from '../domain/endpoint.ts'
import type { Entry } from '../domain/history.ts'
import type { PollObservation, PushObservation } from '../domain/observation.ts'
import type { ParcelState, WriteTx } from './ports.ts'

/** What brought an entry, and where the bytes of a push are kept. */
export type Source =
  | { readonly kind: 'push'; readonly observation: PushObservation; readonly inboxId: number }
  | { readonly kind: 'poll'; readonly observation: PollObservation }

export interface NewEvent {
  /** Its place in the feed, and so in the order of its parcel's deliveries. */
  readonly sequence: number
  readonly entry: Entry
  readonly parcel: ParcelState
  readonly source: Source
  /** `revealed`: it was backfill until this push, so only endpoints that want no backfill have not had it (DOMAIN 6.6). */
  readonly kind: 'new' | 'revealed'
  readonly nowMs: number
}

/**
 * Queues an event for every endpoint that wants it, enabled or not, in the transaction that records it: an event is recorded with all that
 * is owed for it, or not at all (DOMAIN 7.2).
 */
export async function queueDeliveries(tx: WriteTx, event: NewEvent): Promise<number> {
  const { entry, parcel, source, sequence, nowMs } = event
  const { observation } = source
  const distributionType = observation.kind === 'push' ? observation.sighting.distributionType : observation.distributionType
  const offered = {
    status: entry.status,
    detailedStatus: entry.detailedStatus,
    distributionType: distributionType ?? '',
    displayToConsumer: entry.displayToConsumer,
    backfill: source.kind === 'poll' && isBackfill(entry, parcel),
  }
  const endpoints = (await tx.listEndpoints()).map(({ endpoint }) => endpoint)
  const takers = endpoints.filter((endpoint) => endpointWants(endpoint, offered) && (event.kind === 'new' || !endpoint.backfill))
  if (takers.length > 0 && source.kind === 'poll') {
    const { trackingIds, asked } = source.observation
    const named = trackingIds.length === 0 ? [asked] : trackingIds
    await tx.saveComposedEvent(sequence, encodeEvent({ entry, trackingIds: named, distributionType: offered.distributionType }))
  }
  const inboxId = source.kind === 'push' ? source.inboxId : null
  for (const { id } of takers) await tx.queueDelivery({ endpointId: id, parcelId: parcel.parcelId, sequence, inboxId, nowMs })
  return takers.length
}

/**
 * Whether an entry that only polls have brought happened before the relay knew the parcel: before it was watched, and before the earliest
 * event a push brought (DOMAIN 6.6).
 */
export function isBackfill(entry: Entry, parcel: Pick<ParcelState, 'watchedAtMs' | 'firstPushedAtMs'>): boolean {
  if (entry.members.some((kept) => kept.sighting.source === 'push')) return false
  const knownSinceMs = Math.min(parcel.watchedAtMs ?? Number.POSITIVE_INFINITY, parcel.firstPushedAtMs ?? Number.POSITIVE_INFINITY)
  return entry.atMs < knownSinceMs
}

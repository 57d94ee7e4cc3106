import { encodeEvent } from '../../domain/delivery/delivery-request.ts'
import { endpointWants } from '../../domain/delivery/endpoint.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { Payload } from '../../domain/delivery/feed-entry.ts'
import type { Entry } from '../../domain/history/history.ts'
import type { ParcelState } from '../../domain/history/parcel-state.ts'
import { type Told, wasTold } from '../../domain/history/told.ts'
import type { WriteTx } from '../write-store.ts'

export interface NewEvent {
  /** Its place in the feed, and so in the order of its parcel's deliveries. */
  readonly sequence: number
  readonly entry: Entry
  readonly parcelId: number
  readonly carried: Payload
  /** Whether it is backfill (DOMAIN 6.6). */
  readonly backfill: boolean
  /** Whom the entry had been told of before: they are not sent it. */
  readonly toldBefore: Told
  readonly nowMs: number
}

/**
 * Queues an event for every endpoint that wants it, enabled or not, in the transaction that records it: an event is recorded with all that
 * is owed for it, or not at all (DOMAIN 7.2). An endpoint that is still being queued what is older gets it after that (`catch-up`).
 */
export async function enqueueDeliveries(tx: WriteTx, event: NewEvent): Promise<number> {
  const states = (await tx.listEndpoints()).filter(({ queuedTo }) => queuedTo === null)
  if (states.length === 0) return 0
  return await queueFor(tx, states, event)
}

/** Queues an event for those of some endpoints that want it and were not told of its entry before. */
export async function queueFor(tx: WriteTx, states: readonly EndpointState[], event: NewEvent): Promise<number> {
  const { entry, parcelId, carried, sequence, nowMs, backfill, toldBefore } = event
  const { status, detailedStatus, displayToConsumer } = entry
  const offered = { status, detailedStatus, distributionType: carried.distributionType, displayToConsumer, backfill }
  const takers = states.filter(({ endpoint, backfilled }) => endpointWants(endpoint, offered) && !wasTold(toldBefore, backfilled))
  if (takers.length > 0 && carried.kind === 'composed') {
    const { trackingIds, distributionType } = carried
    await tx.saveComposedEvent(sequence, encodeEvent({ entry, trackingIds, distributionType }))
  }
  const inboxId = carried.kind === 'push' ? carried.inboxId : null
  for (const { endpoint } of takers) await tx.queueDelivery({ endpointId: endpoint.id, parcelId, sequence, inboxId, nowMs })
  return takers.length
}

/**
 * Whether an entry that nobody was told of yet, and only polls have brought, happened before the relay knew the parcel: before it was
 * watched, and before the earliest event a push brought (DOMAIN 6.6).
 */
export function isBackfill(entry: Entry, parcel: Pick<ParcelState, 'watchedAtMs' | 'firstPushedAtMs'>): boolean {
  if (entry.members.some((kept) => kept.sighting.source === 'push')) return false
  const knownSinceMs = Math.min(parcel.watchedAtMs ?? Number.POSITIVE_INFINITY, parcel.firstPushedAtMs ?? Number.POSITIVE_INFINITY)
  return entry.atMs < knownSinceMs
}

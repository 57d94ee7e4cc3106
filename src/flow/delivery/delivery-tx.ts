import type { ReplayedBatch, ReplayRequest } from '../../domain/delivery/delivery-list.ts'
import type {
  ClaimRef,
  ComposedDelivery,
  NextDeliveries,
  NextDelivery,
  NextRequest,
  ProbeRequest,
  QueuedFeed,
  Settled,
} from '../../domain/delivery/dispatch-round.ts'
import type { EndpointHealth } from '../../domain/delivery/endpoint-health.ts'
import type { CatchingUp, EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { FailureNote } from '../../domain/delivery/failure-group.ts'
import type { FeedEntries } from '../../domain/delivery/feed-entry.ts'
import type { ConfiguredNames } from '../../domain/delivery/unnamed-endpoint.ts'

/** What delivery needs of the store inside one transaction; see `WriteTx`. */
export interface DeliveryTx {
  /** The last sequence in use (others may give more before this ends), and the one up to which events of the feed were deleted (0: none were). */
  feedSpan(): Promise<{ readonly last: number; readonly prunedTo: number }>
  /** This transaction only happens if no sequence above this one is in use when it ends; otherwise it is begun again. */
  nothingSince(sequence: number): void
  /** The first sequence of what is recorded after this transaction. It may stand for the number, to be saved as a part of an endpoint only. */
  sequenceToCome(): Promise<number>
  /** Reads up to `limit` events of the feed after a sequence, with what endpoints are sent for them. */
  readFeedEntries(request: { readonly after: number; readonly limit: number }): Promise<FeedEntries>
  /** All endpoints that are not removed. */
  listEndpoints(): Promise<readonly EndpointState[]>
  /** Reserves an id; no other endpoint gets it. */
  reserveEndpoint(nowMs: number): Promise<string>
  /** Saves an endpoint, or adds it when its id is '' or reserved; returns the id. */
  saveEndpoint(state: EndpointState): Promise<string>
  /** Saves the health of an endpoint when nothing else of it changed. */
  saveHealth(endpointId: string, health: EndpointHealth): void
  /** What the configs of the replicas that share the store name; it stays so until the transaction ends. */
  endpointsConfigured(): Promise<ConfiguredNames>
  /** Removes an endpoint: nothing is claimed for it any more, and what waits is cancelled, see `cancelRemoved`. */
  removeEndpoint(endpointId: string, nowMs: number): Promise<void>
  /** Queues an event of the relay's own, under the next sequence, and due at once. */
  queueComposed(event: ComposedDelivery): Promise<void>
  /** Queues events that `readFeedEntries` has read, for an endpoint that catches up. They come after all that their parcels have there. */
  queueFeed(events: QueuedFeed): Promise<void>
  /** Saves how far the feed is queued for an endpoint. Returns whether it has caught up; false where that is not known before this ends. */
  saveQueuedTo(state: CatchingUp, to: { readonly next: number; readonly ended: boolean }): Promise<boolean>
  /** The claims that must not start: they have ended or were skipped, are not their parcel's only claim, or stand behind another after a join. */
  findOvertaken(deliveryIds: readonly number[]): Promise<readonly number[]>
  /** The next deliveries of an endpoint, the most overdue first, at most one per parcel. */
  findNextDeliveries(request: NextRequest): Promise<NextDeliveries>
  /**
   * The next probe of a failing endpoint: a delivery that was never attempted, else the one whose last attempt is longest ago; null: there
   * is none.
   */
  findProbe(request: ProbeRequest): Promise<NextDelivery | null>
  /**
   * Moves a waiting delivery before everything else that waits for its endpoint, and returns how it stands; null: there is no such
   * delivery.
   */
  hastenDelivery(deliveryId: number): Promise<{ readonly endpointId: string; readonly state: 'due' | 'behind' | 'ended' } | null>
  /** Marks a waiting delivery as skipped: it is claimed no more, see `findSkipped`. `ended`: it has ended already; null: there is no such delivery. */
  skipDelivery(deliveryId: number): Promise<'done' | 'ended' | null>
  /** Takes back that a waiting delivery is to be skipped. */
  unskipDelivery(deliveryId: number): void
  /**
   * The deliveries that are marked as skipped and wait for these endpoints, or for one that nobody delivers to; null: for any endpoint. The caller ends those that
   * are not under way, see `saveSettlements`.
   */
  findSkipped(endpointIds: readonly string[] | null): Promise<readonly ClaimRef[]>
  /** Whether a delivery of another parcel than these waits for an endpoint. */
  waitsForOthers(endpointId: string, parcelIds: readonly number[]): Promise<boolean>
  /** Queues a batch of ended deliveries again, see the verb of the same name. */
  replayDeliveries(request: ReplayRequest): Promise<ReplayedBatch>
  /** Marks up to `limit` deliveries of removed endpoints as cancelled; `isDone`: none is left. */
  cancelRemoved(limit: number): Promise<{ readonly isDone: boolean }>
  /**
   * Saves attempts and the new states of their deliveries, and ends those of `skipped` that are still marked. When a delivery ends, the next one of its
   * parcel may go. One that is marked and was not accepted is dead as skipped, if it is in `skipped` too.
   */
  saveSettlements(settled: readonly Settled[], skipped: readonly ClaimRef[], nowMs: number): void
  /** Adds failures to the groups of their endpoints. */
  noteFailures(failures: readonly FailureNote[], nowMs: number): void
}

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

/** The store as delivery uses it inside one transaction; see `WriteTx`. */
export interface DeliveryTx {
  /**
   * The last sequence in use (other transactions may give more before this one ends), and the sequence up to which the feed was deleted (0:
   * nothing was).
   */
  feedSpan(): Promise<{ readonly last: number; readonly prunedTo: number }>
  /** Lets the transaction commit only if no sequence above this one is in use when it ends; otherwise it starts over. */
  nothingSince(sequence: number): void
  /** The first sequence that is given after this transaction. The value may be a placeholder: save it only as a part of an endpoint. */
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
  /** The endpoints that the configs of all replicas name. They stay as they are until the transaction ends. */
  endpointsConfigured(): Promise<ConfiguredNames>
  /** Removes an endpoint: none of its deliveries is claimed any more, and `cancelRemoved` cancels those that wait. */
  removeEndpoint(endpointId: string, nowMs: number): Promise<void>
  /** Queues an event that the relay has composed, under the next sequence and due at once. */
  queueComposed(event: ComposedDelivery): Promise<void>
  /**
   * Queues events that `readFeedEntries` has read, for an endpoint that catches up. They come after all other deliveries of their parcels
   * at that endpoint.
   */
  queueFeed(events: QueuedFeed): Promise<void>
  /**
   * Saves how far the feed is queued for an endpoint. Returns whether it has caught up; false also if that is unknown before the
   * transaction ends.
   */
  saveQueuedTo(state: CatchingUp, to: { readonly next: number; readonly ended: boolean }): Promise<boolean>
  /** The deliveries among these that are gone, because their parcels were erased. */
  findGone(deliveryIds: readonly number[]): Promise<readonly number[]>
  /**
   * The claims that must not start: they have ended or were skipped, are not their parcel's only claim, or a join has put another delivery
   * before them.
   */
  findOvertaken(deliveryIds: readonly number[]): Promise<readonly number[]>
  /** The next deliveries of an endpoint, the most overdue first, at most one per parcel. */
  findNextDeliveries(request: NextRequest): Promise<NextDeliveries>
  /**
   * The next probe of a failing endpoint: a delivery that was never attempted, else the one whose last attempt is longest ago; null: there
   * is none.
   */
  findProbe(request: ProbeRequest): Promise<NextDelivery | null>
  /**
   * Moves a waiting delivery before everything else that waits for its endpoint, and returns its state; null: there is no such delivery.
   */
  hastenDelivery(deliveryId: number): Promise<{ readonly endpointId: string; readonly state: 'due' | 'behind' | 'ended' } | null>
  /** Marks a waiting delivery as skipped: it is claimed no more, see `findSkipped`. `done`: it is marked; `ended`: it has ended already; null: there is no such delivery. */
  skipDelivery(deliveryId: number): Promise<'done' | 'ended' | null>
  /** Removes the mark that `skipDelivery` has set. */
  unskipDelivery(deliveryId: number): void
  /**
   * The deliveries that are marked as skipped and wait for these endpoints, or for an endpoint that no replica delivers to; null: for any
   * endpoint. The caller passes those that are not under way to `saveSettlements`, which ends them.
   */
  findSkipped(endpointIds: readonly string[] | null): Promise<readonly ClaimRef[]>
  /** Whether a delivery of any parcel but these waits for an endpoint. */
  waitsForOthers(endpointId: string, parcelIds: readonly number[]): Promise<boolean>
  /** Queues a batch of ended deliveries again, see `DeliveryWrites`. */
  replayDeliveries(request: ReplayRequest): Promise<ReplayedBatch>
  /** Marks up to `limit` deliveries of removed endpoints as cancelled; `isDone`: none is left. */
  cancelRemoved(limit: number): Promise<{ readonly isDone: boolean }>
  /**
   * Saves attempts and the new states of their deliveries, and ends the deliveries of `skipped` that are still marked. When a delivery
   * ends, the next one of its parcel may go. A delivery in both lists that is still marked is dead as skipped, unless it was accepted.
   */
  saveSettlements(settled: readonly Settled[], skipped: readonly ClaimRef[], nowMs: number): void
  /** Adds failures to the groups of their endpoints. */
  noteFailures(failures: readonly FailureNote[], nowMs: number): void
}

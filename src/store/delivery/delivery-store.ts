import type {
  DeliveryPage,
  DeliveryQuery,
  DeliverySelection,
  InspectedDelivery,
  ReplayCount,
  ReplayedBatch,
  ReplayRequest,
} from '../../domain/delivery/delivery-list.ts'
import type {
  ClaimRef,
  ComposedDelivery,
  NextDeliveries,
  NextRequest,
  ProbeRequest,
  QueuedFeed,
  Settled,
} from '../../domain/delivery/dispatch-round.ts'
import type { DamagedEndpoint } from '../../domain/delivery/endpoint.ts'
import type { EndpointHealth } from '../../domain/delivery/endpoint-health.ts'
import type { CatchingUp, EndpointBacklog, EndpointState } from '../../domain/delivery/endpoint-state.ts'
import type { EventValue } from '../../domain/delivery/event-values.ts'
import type { FailureGroup } from '../../domain/delivery/failure-group.ts'
import type { FeedEntries, FeedEntriesRequest, FeedSlice } from '../../domain/delivery/feed-entry.ts'
import type { ConfiguredNames } from '../../domain/delivery/unnamed-endpoint.ts'

/** The store as delivery uses it inside one transaction; see `WriteTx`. */
export interface DeliveryTx {
  /**
   * `last`: the last sequence in use. Other transactions may use later sequences before this transaction ends. `prunedTo`: the last deleted
   * sequence; 0: none was deleted.
   */
  feedSpan(): Promise<{ readonly last: number; readonly prunedTo: number }>
  /** Makes the transaction start over if another transaction uses a higher sequence before this one ends. */
  nothingSince(sequence: number): void
  /** The first sequence after this transaction. It may be a placeholder, so use it only in an endpoint that the transaction saves. */
  sequenceToCome(): Promise<number>
  /** Reads events of the feed, with the payloads that endpoints get. */
  readFeedEntries(request: FeedEntriesRequest): Promise<FeedEntries>
  /** All endpoints that are not removed. */
  listEndpoints(): Promise<readonly EndpointState[]>
  /** Saves an endpoint, or adds it if its id is '' or reserved. Returns the id. */
  saveEndpoint(state: EndpointState): Promise<string>
  /** Saves only the health of an endpoint. Use it if the transaction changes nothing else about the endpoint. */
  saveHealth(endpointId: string, health: EndpointHealth): void
  /** The endpoints that the configs of all replicas name. They cannot change until the transaction ends. */
  endpointsConfigured(): Promise<ConfiguredNames>
  /** Removes an endpoint. Its deliveries are no longer claimed, and `cancelRemoved` cancels them later. */
  removeEndpoint(endpointId: string, nowMs: number): Promise<void>
  /** Queues an event that the relay has composed. It gets the next sequence and is due at once. */
  queueComposed(event: ComposedDelivery): Promise<void>
  /**
   * Queues events from `readFeedEntries` for an endpoint that catches up. The events come after all other deliveries of their
   * parcels at that endpoint.
   */
  queueFeed(events: QueuedFeed): Promise<void>
  /** Saves how far the feed is queued for an endpoint. Returns true if the endpoint has caught up; false: it has not, or this is not known yet. */
  saveQueuedTo(state: CatchingUp, to: { readonly next: number; readonly ended: boolean }): Promise<boolean>
  /** The next deliveries of an endpoint, the most overdue first, at most one for each parcel. */
  findNextDeliveries(request: NextRequest): Promise<NextDeliveries>
  /**
   * The waiting deliveries that are marked as skipped, of these endpoints and of endpoints to which no replica delivers. Null: of all endpoints.
   * The caller ends them by `saveSettlements`, except those that are being sent.
   */
  findSkipped(endpointIds: readonly string[] | null): Promise<readonly ClaimRef[]>
  /** See `DeliveryWrites`. */
  replayDeliveries(request: ReplayRequest): Promise<ReplayedBatch>
  /**
   * Saves attempts and the new states of their deliveries. Ends the deliveries in `skipped` that are still marked as skipped. When a
   * delivery ends, the next one of its parcel may be sent. A marked delivery in both lists ends as skipped, unless it was accepted.
   */
  saveSettlements(settled: readonly Settled[], skipped: readonly ClaimRef[], nowMs: number): void
}

/** The reads of delivery; see `ReadSide`. */
export interface DeliveryReads {
  /** Events of the feed after a sequence, with the content that they have now. */
  readFeed(request: { readonly after: number; readonly limit: number }): Promise<FeedSlice>
  /** The values that each member of events has had, up to a thousand for each. */
  listEventValues(): Promise<readonly EventValue[]>
  /** All endpoints that are not removed, in the order in which they were added. */
  listEndpoints(): Promise<readonly EndpointState[]>
  /** The endpoints that `listEndpoints` leaves out. */
  listDamagedEndpoints(): Promise<readonly DamagedEndpoint[]>
  /** An endpoint's groups of equal failures. Leaves out groups without a failure since `sinceMs`. The latest comes first. */
  listFailures(request: { readonly endpointId: string; readonly sinceMs: number }): Promise<readonly FailureGroup[]>
  /** The group with the last failure of each endpoint, by the endpoint's id. */
  lastFailures(endpointIds: readonly string[]): Promise<ReadonlyMap<string, FailureGroup>>
  /**
   * Counts the waiting and the dead deliveries of endpoints, by their ids: in one query those of which there are few, as of most endpoints, and the
   * others in parts, so that other reads can run in between.
   */
  countBacklogs(endpointIds: readonly string[]): Promise<ReadonlyMap<string, EndpointBacklog>>
  /** Returns when the oldest waiting delivery of each endpoint was queued, in one query; absent: none waits. Looks at up to 20,000 of each. */
  listOldestWaiting(): Promise<ReadonlyMap<string, number>>
  /** Whether a failing endpoint has a delivery for a probe; see `DeliveryTx.findProbe`. */
  hasProbe(request: Omit<ProbeRequest, 'nowMs'>): Promise<boolean>
  /** The newest delivery comes first. */
  listDeliveries(query: DeliveryQuery): Promise<DeliveryPage>
  /** A delivery by id; null: no delivery has this id. */
  findDelivery(id: number): Promise<InspectedDelivery | null>
  /** Returns the sequences of the given events for which the endpoint has a delivery in any state. */
  findQueued(request: {
    readonly endpointId: string
    readonly events: readonly { readonly parcelId: number; readonly sequence: number }[]
  }): Promise<ReadonlySet<number>>
  /** Counts the deliveries that a replay would queue. It stops at `limit`. */
  countReplayable(request: {
    readonly selection: DeliverySelection
    readonly limit: number
    readonly untilMs: number
  }): Promise<ReplayCount>
}

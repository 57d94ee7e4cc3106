import type { Audited } from '../../domain/admin/operator-action.ts'
import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type {
  DeliveryPage,
  DeliveryQuery,
  DeliverySelection,
  InspectedDelivery,
  ReplayCount,
  ReplayedBatch,
  ReplayRequest,
  RetryOutcome,
} from '../../domain/delivery/delivery-list.ts'
import type { DeliveryRules, DispatchRound, DispatchRoundReport, ProbeRequest } from '../../domain/delivery/dispatch-round.ts'
import type { DamagedEndpoint } from '../../domain/delivery/endpoint.ts'
import type {
  AddedEndpoint,
  ConfiguredEndpoint,
  EndpointBacklog,
  EndpointChangeRequest,
  EndpointEdit,
  EndpointState,
} from '../../domain/delivery/endpoint-state.ts'
import type { EventValue } from '../../domain/delivery/event-values.ts'
import type { FailureGroup } from '../../domain/delivery/failure-group.ts'
import type { FeedSlice } from '../../domain/delivery/feed-entry.ts'
import type { PostRequest } from '../../domain/delivery/post-request.ts'
import type { UnnamedRequest } from '../../domain/delivery/unnamed-endpoint.ts'

/** Posts to endpoints. Failures of the receiver or the network are returned as values and never thrown. */
export interface DeliverySender {
  /** Posts once. Never rejects. */
  send(request: PostRequest): Promise<AttemptResult>
  /** Posts once, cheaply enough for thousands of posts per second. `onEnd` is called once, and never before `post` returns. */
  post(request: PostRequest, onEnd: (result: AttemptResult) => void): void
}

/** Signals to readers of the feed that something was committed. */
export interface FeedSignal {
  /** The number of signals so far. Read it before looking at the feed. */
  seen(): number
  /** Resolves when there are more signals than `seen`, after `timeoutMs`, when no more signals come, or when the reader has left. */
  wait(seen: number, timeoutMs: number, left: AbortSignal): Promise<void>
  /** Whether the relay is stopping, so that no more signals come. */
  isClosed(): boolean
}

/** The verbs of delivery that write; see `WriteSide`. Times are epoch milliseconds. */
export interface DeliveryWrites {
  /** Settles attempts and claims the next deliveries, in one transaction. */
  dispatchRound(request: DispatchRound): Promise<DispatchRoundReport>
  /** Changes how deliveries are settled and claimed. */
  adjustDelivery(rules: DeliveryRules): Promise<void>
  /**
   * Makes the stored endpoints of the config file, and the endpoint for operator events, match the config. Pauses endpoints that no replica's
   * config names any more. `isStarting` false: this config was in effect before the call.
   */
  syncEndpoints(configured: readonly ConfiguredEndpoint[], nowMs: number, operatorUrl: string | null, isStarting?: boolean): Promise<void>
  /**
   * Pauses the endpoints of config files that no replica's config names any more, and removes them after a while. Resolves with the names
   * of the removed endpoints.
   */
  removeUnnamedEndpoints(request: Omit<UnnamedRequest, 'isStarting'>): Promise<readonly string[]>
  /** Reserves an id before the endpoint is added, because the endpoint's key is sealed for this id. */
  reserveEndpoint(nowMs: number): Promise<string>
  /** Adds a managed endpoint under a reserved id. It gets the feed from sequence `from` on; null: from now on. */
  addEndpoint(added: AddedEndpoint & Audited): Promise<EndpointEdit>
  /**
   * Queues a part of the feed for one endpoint that is catching up. `hasAdvanced`: an endpoint was catching up. `queued`: how many
   * deliveries were queued for it. `isDone`: no endpoint is catching up any more.
   */
  replayFeed(request: {
    readonly limit: number
    readonly nowMs: number
  }): Promise<{ readonly hasAdvanced: boolean; readonly queued: number; readonly isDone: boolean }>
  /** Changes a managed endpoint, or enables an endpoint of the config file again after it answered 410 or kept failing. */
  changeEndpoint(request: EndpointChangeRequest & Audited): Promise<EndpointEdit>
  /** Replaces sealed keys by the same keys, sealed again, except keys that were changed meanwhile. Returns whether any was replaced. */
  resealEndpoint(request: { readonly id: string; readonly replacements: ReadonlyMap<string, string> }): Promise<boolean>
  /** Removes a managed endpoint, or a damaged one. `cancelRemoved` then cancels its waiting deliveries. */
  removeEndpoint(
    request: Audited & { readonly id: string; readonly nowMs: number },
  ): Promise<{ readonly kind: 'done' | 'unknown' | 'read_only' }>
  /** Queues a batch of ended deliveries again, under the same event ids. Null: nothing can be queued for the endpoint now. */
  replayDeliveries(request: ReplayRequest & Audited): Promise<ReplayedBatch | null>
  /** Marks a batch of deliveries of removed endpoints as cancelled. `isDone`: none is left. */
  cancelRemoved(request: { readonly limit: number }): Promise<{ readonly isDone: boolean }>
  /**
   * Makes all waiting deliveries of an endpoint due now. `done`: they are due. `unknown`: there is no such endpoint. `disabled`: the endpoint
   * is disabled, so nothing has changed.
   */
  retryEndpoint(request: Audited & { readonly id: string; readonly nowMs: number }): Promise<'done' | 'unknown' | 'disabled'>
  /** Makes one delivery due now, before all other waiting deliveries of its endpoint. */
  retryDelivery(request: Audited & { readonly deliveryId: number; readonly nowMs: number }): Promise<RetryOutcome>
  /**
   * Marks a waiting delivery as skipped. The replica that delivers to its endpoint ends it (`dead`, reason `skipped`) in its next dispatch
   * round, or when the running attempt ends. Then the parcel's next delivery is sent. `done`: the delivery is marked. `unknown`: there is no
   * such delivery. `ended`: it had ended before.
   */
  skipDelivery(request: Audited & { readonly deliveryId: number }): Promise<'done' | 'unknown' | 'ended'>
  /** The prefix of this relay's event ids. It is created once and never changes. */
  relayId(): Promise<string>
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

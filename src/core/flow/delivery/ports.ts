import type { Audited } from '../../domain/admin/operator-action.ts'
import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type { ReplayedBatch, ReplayRequest, RetryOutcome } from '../../domain/delivery/delivery-list.ts'
import type { PostRequest } from '../../domain/delivery/delivery-request.ts'
import type { DeliveryRules, DispatchRound, DispatchRoundReport } from '../../domain/delivery/dispatch-round.ts'
import type {
  AddedEndpoint,
  ConfiguredEndpoint,
  EndpointChangeRequest,
  EndpointEdit,
  UnnamedRequest,
} from '../../domain/delivery/endpoint-state.ts'

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

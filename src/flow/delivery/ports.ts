import type { AttemptResult } from '../../domain/delivery/delivery.ts'
import type {
  AttemptRecord,
  DeliveryPage,
  DeliveryQuery,
  DeliverySelection,
  FoundDelivery,
  ReplayedBatch,
  ReplayRequest,
  SentEvent,
} from '../../domain/delivery/delivery-list.ts'
import type {
  DeliveryRules,
  DispatchRound,
  DispatchRoundReport,
  NextDelivery,
  NextRequest,
  ProbeRequest,
  QueuedDelivery,
  ReviewedClaims,
  Settled,
} from '../../domain/delivery/dispatch-round.ts'
import type { EndpointSettings } from '../../domain/delivery/endpoint.ts'
import type { EndpointHealth } from '../../domain/delivery/endpoint-health.ts'
import type {
  ConfiguredEndpoint,
  EndpointBacklog,
  EndpointChangeRequest,
  EndpointEdit,
  EndpointState,
} from '../../domain/delivery/endpoint-state.ts'
import type { FeedEntries, FeedSlice } from '../../domain/delivery/feed-entry.ts'
import type { OperatorEvent } from '../../domain/delivery/operator-event.ts'
import type { PostRequest } from '../../domain/delivery/post-request.ts'

/** Posts to endpoints. What the other side or the network does is no error: failure is a value. */
export interface DeliverySender {
  send(request: PostRequest): Promise<AttemptResult>
  /** The same for thousands a second. `onEnd` is called once, and never before this returns. */
  post(request: PostRequest, onEnd: (result: AttemptResult) => void): void
}

/** Keeps the keys of endpoints from whoever reads the store. */
export interface Vault {
  seal(key: string, endpointId: string): Promise<string>
  /** Null: it was sealed for another endpoint, or with a key that is not to be had any more. */
  open(sealed: string, endpointId: string): Promise<string | null>
}

/** Tells those who follow the feed that something was committed. */
export interface FeedSignal {
  /** How often it was told so far: to be taken before looking. */
  seen(): number
  /** Resolves once it was told more often than `seen`, the time is over, it is closed, or who waits has left. */
  wait(seen: number, timeoutMs: number, left: AbortSignal): Promise<void>
  isClosed(): boolean
}

/** The verbs of delivery that write; see `WriteSide`. */
export interface DeliveryWrites {
  /** Settles attempts and claims the next ones, in one transaction. */
  dispatchRound(request: DispatchRound): Promise<DispatchRoundReport>
  /** How deliveries are settled and handed out from now on. */
  adjustDelivery(rules: DeliveryRules): Promise<void>
  /** Makes the endpoints of origin `config`, and the operator's, what the config file says; those it no longer names are removed. */
  syncEndpoints(configured: readonly ConfiguredEndpoint[], nowMs: number, operatorUrl: string | null): Promise<void>
  /** Queues an operator event, if the config says where they go. */
  queueOperatorEvent(event: OperatorEvent, nowMs: number): Promise<void>
  /** An id for an endpoint that is yet to be added: its key is sealed for it alone. */
  reserveEndpoint(nowMs: number): Promise<string>
  /** Adds a managed endpoint under an id that was reserved: it is owed what is in the feed from a sequence on; null: from now on. */
  addEndpoint(added: {
    readonly id: string
    readonly settings: EndpointSettings
    readonly key: string
    readonly from: number | null
  }): Promise<EndpointEdit>
  /** Queues a stretch of the feed for an endpoint that starts further back; `isDone`: no endpoint has more to be queued. */
  replayFeed(request: { readonly limit: number; readonly nowMs: number }): Promise<{ readonly queued: number; readonly isDone: boolean }>
  /** Changes a managed endpoint; one of the config can only be enabled again after it was disabled by what it answered. */
  changeEndpoint(request: EndpointChangeRequest): Promise<EndpointEdit>
  /** Removes a managed endpoint; what waits for it is cancelled, see `cancelRemoved`. */
  removeEndpoint(request: { readonly id: string; readonly nowMs: number }): Promise<EndpointEdit>
  /** Queues a stretch of the events of ended deliveries again, under the ids they had; null: nothing can be queued for that endpoint now. */
  replayDeliveries(request: ReplayRequest): Promise<ReplayedBatch | null>
  /** Writes down as cancelled what still waits for endpoints that were removed, a stretch at a time; `isDone`: nothing does. */
  cancelRemoved(request: { readonly limit: number }): Promise<{ readonly isDone: boolean }>
  /** Makes everything that waits for an endpoint due now. `disabled`: nothing is sent to it until it is enabled. */
  retryEndpoint(request: { readonly id: string; readonly nowMs: number }): Promise<'done' | 'unknown' | 'disabled'>
  /** Makes one delivery due now, before what else waits for its endpoint. `behind`: an earlier one of its parcel goes first. */
  retryDelivery(request: {
    readonly deliveryId: number
    readonly nowMs: number
  }): Promise<'done' | 'unknown' | 'disabled' | 'behind' | 'ended'>
  /** What this relay calls itself in the ids of events: made on first use, then kept. */
  relayId(): Promise<string>
}

/** What delivery needs of the store inside one transaction; see `WriteTx`. */
export interface DeliveryTx {
  /** The last sequence given, and up to which events of the feed are gone (0: none are). */
  feedSpan(): Promise<{ readonly last: number; readonly prunedTo: number }>
  /** What endpoints are sent for the events of the feed after a sequence, of which `limit` are looked at. */
  readFeedEntries(request: { readonly after: number; readonly limit: number }): Promise<FeedEntries>
  /** Those that are not removed. */
  listEndpoints(): Promise<readonly EndpointState[]>
  /** An id that no endpoint has, and none will get but by `saveEndpoint`. */
  reserveEndpoint(nowMs: number): Promise<string>
  /** Adds one when its id is '' or reserved; returns the id. */
  saveEndpoint(state: EndpointState): Promise<string>
  /** Of an endpoint whose health is all that changed. */
  saveHealth(endpointId: string, health: EndpointHealth): void
  /** From then on nothing is handed out for it; what waits is cancelled, see `cancelRemoved`. */
  removeEndpoint(endpointId: string, nowMs: number): Promise<void>
  saveComposedEvent(sequence: number, body: Uint8Array): Promise<void>
  queueDelivery(delivery: QueuedDelivery): Promise<void>
  /** How claimed deliveries of an endpoint, by their ids, stand by now. */
  reviewClaims(deliveryIds: readonly number[]): Promise<ReviewedClaims>
  /** The deliveries of an endpoint that may go next, the most overdue first; of a parcel at most one. */
  findNextDeliveries(request: NextRequest): Promise<readonly NextDelivery[]>
  /** What an endpoint that is failing is asked with next: what was never attempted first, then what was last attempted longest ago. */
  findProbe(request: ProbeRequest): Promise<NextDelivery | null>
  /** Puts a delivery that may go, now or later, before what else waits for its endpoint; tells how it stands. Null: there is none. */
  hastenDelivery(deliveryId: number): Promise<{ readonly endpointId: string; readonly state: 'due' | 'behind' | 'ended' } | null>
  /** Whether something of another parcel may go to an endpoint, now or later. */
  waitsForOthers(endpointId: string, parcelId: number): Promise<boolean>
  /** See the verbs of the same names. */
  replayDeliveries(request: ReplayRequest): Promise<ReplayedBatch>
  cancelRemoved(limit: number): Promise<{ readonly isDone: boolean }>
  /** Writes attempts down and what they made of their deliveries; when that ends one, its parcel's next one may go. */
  saveSettlements(settled: readonly Settled[], nowMs: number): void
}

/** What delivery reads of the store; see `ReadSide`. */
export interface DeliveryReads {
  /** Events of the feed after a sequence, of one moment, told from what is known at that moment. */
  readFeed(request: { readonly after: number; readonly limit: number }): Promise<FeedSlice>
  /** Those that are not removed, in the order they were added. */
  listEndpoints(): Promise<readonly EndpointState[]>
  /** What waits for an endpoint and what is dead, counted in stretches between which others read. */
  countBacklog(endpointId: string): Promise<EndpointBacklog>
  listDeliveries(query: DeliveryQuery): Promise<DeliveryPage>
  /** With its attempts, the last one first; null: there is none. */
  findDelivery(
    id: number,
  ): Promise<{ readonly delivery: FoundDelivery; readonly attempts: readonly AttemptRecord[]; readonly sent: SentEvent } | null>
  /** Counted up to a limit. */
  countReplayable(request: { readonly selection: DeliverySelection; readonly limit: number; readonly untilMs: number }): Promise<number>
}

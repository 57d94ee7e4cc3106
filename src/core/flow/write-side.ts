import type { ClockDoubt, OtherClocks } from '../domain/admin/clock-record.ts'
import type { Job, JobTask } from '../domain/admin/job.ts'
import type { Audited, OperatorAction } from '../domain/admin/operator-action.ts'
import type { EndedSession, TokenKeyRotation, TokenKeys } from '../domain/admin/token-keys.ts'
import type { ReplayedBatch, ReplayRequest, RetryOutcome } from '../domain/delivery/delivery-list.ts'
import type { DeliveryRules, DispatchRound, DispatchRoundReport } from '../domain/delivery/dispatch-round.ts'
import type {
  AddedEndpoint,
  ConfiguredEndpoint,
  EndpointChangeRequest,
  EndpointEdit,
  UnnamedRequest,
} from '../domain/delivery/endpoint-state.ts'
import type { OperatorEvent } from '../domain/delivery/operator-event.ts'
import type { OrderContext, OrderPart } from '../domain/history/order-context.ts'
import type { BatchReport, Incoming } from '../domain/history/recording.ts'
import type { CadenceFacts, NextPoll } from '../domain/polling/cadence.ts'
import type { CarrierMemory } from '../domain/polling/call-budget.ts'
import type {
  DuePoll,
  LanguageAsked,
  MissedPush,
  PollFailure,
  PushChannelView,
  PushHealthUpdate,
  WatchResult,
} from '../domain/polling/poll.ts'
import type { ScheduleShift } from '../store/polling/schedule-shift.ts'

/**
 * Everything that writes to the store. Arguments and results are plain data, so that the verbs can run on this thread or another. Each wing adds its
 * own verbs to this interface.
 */
export interface WriteSide extends HistoryWrites, PollingWrites, AdminWrites, DeliveryWrites {
  close(): Promise<void>
}

/** The verbs of polling that write; see `WriteSide`. Times are epoch milliseconds. */
interface PollingWrites {
  /**
   * Leases due parcels: the most overdue, or if calls are scarce, the most valuable. Leaves out those in `underWay`, which are still being
   * polled. `probeSinceMs`: leases one due parcel at random, if possible one whose poll has not failed since this time.
   */
  claimDuePolls(request: {
    readonly nowMs: number
    readonly limit: number
    readonly leaseMs: number
    readonly underWay?: readonly number[]
    readonly probeSinceMs?: number | undefined
  }): Promise<readonly DuePoll[]>
  /** Leases the parcel of an identifier, whether or not its poll is due; null: there is no such parcel. */
  claimPoll(request: { readonly identifier: string; readonly nowMs: number; readonly leaseMs: number }): Promise<DuePoll | null>
  /** Saves that a poll failed, and schedules the next poll. */
  notePollFailure(failure: PollFailure): Promise<void>
  /** Remembers that the carrier answered 404 or 410 for an identifier of a known parcel (DOMAIN 6.3). */
  noteNotPollable(identifier: string): Promise<void>
  /** Notes that a language was fetched for a parcel. The language is fetched again only if a newer entry lacks it (DOMAIN 4.2). */
  noteLanguageAsked(request: LanguageAsked): Promise<void>
  /**
   * Watches an identifier: creates its parcel if there is none, and polls the parcel again if it was no longer polled. Null: the identifier
   * belongs to an erased parcel.
   */
  watch(request: Audited & { readonly identifier: string; readonly nowMs: number }): Promise<WatchResult | null>
  /**
   * Watches many identifiers in one transaction. Returns a result for each identifier, in their order; null: the identifier belongs to an
   * erased parcel. `isAtomic`: if one identifier belongs to an erased parcel, none is watched, and all results are null. `orders`: what is said
   * of the order of each; null: nothing.
   */
  watchMany(
    request: Audited & {
      readonly identifiers: readonly string[]
      readonly orders?: readonly (OrderPart | null)[]
      readonly nowMs: number
      readonly isAtomic?: boolean
    },
  ): Promise<readonly (WatchResult | null)[]>
  /**
   * Replaces what is said of the order of a parcel, and watches an identifier without a parcel. `changed`: something else was said before. Null:
   * the identifier belongs to an erased parcel.
   */
  saveOrder(
    request: Audited & { readonly identifier: string; readonly context: OrderContext; readonly nowMs: number },
  ): Promise<(WatchResult & { readonly changed: boolean }) | null>
  /** Stops polling the parcel of an identifier until a push comes or an app asks; null: there is no such parcel. Deletes nothing. */
  unwatch(request: Audited & { readonly identifier: string }): Promise<{ readonly parcelId: number } | null>
  /**
   * Moves the polls and deliveries of up to `limit` parcels with ids above `afterParcelId` back by `byMs`, because the wall clock was put
   * back that much. If a parcel was polled between `sinceMs` and `nowMs`, its next poll stays: it may have been planned by the new time.
   * Returns the last id that it looked at; null: there are no more.
   */
  shiftSchedule(request: ScheduleShift): Promise<number | null>
  /** Returns the facts that the last run saved about the carrier; null: it saved none. */
  carrierMemory(): Promise<CarrierMemory | null>
  /** Saves facts about the carrier for the next run. */
  rememberCarrier(memory: CarrierMemory): Promise<void>
  pushChannel(): Promise<PushChannelView>
  /** Returns when and why a parcel is polled next by the present model, or why it is not polled. */
  planPoll(facts: CadenceFacts): Promise<NextPoll>
  /** Saves what was learnt about the carrier, if that is due. Notifies operators when pushes become unreliable or are reliable again. */
  checkpointModel(): Promise<PushHealthUpdate>
  /** Decides, for polled entries whose grace period is over, whether their pushes were missed (DOMAIN 6.6). Returns the missed pushes. */
  settleMissedPushes(nowMs: number): Promise<readonly MissedPush[]>
}

/** The verbs of history that write; see `WriteSide`. */
interface HistoryWrites {
  /**
   * Returns when the parcel of an identifier was erased; null: it was not, or a later parcel may have the identifier. If it was, the carrier must
   * not be asked about the identifier.
   */
  erasedAtMs(request: { readonly identifier: string; readonly nowMs: number }): Promise<number | null>
  /**
   * Records a batch in one transaction. If this resolves, every observation is durable. If it rejects, no observation was recorded. An
   * observation that cannot be recorded is quarantined, and the others are recorded.
   */
  record(batch: readonly Incoming[]): Promise<BatchReport>
}

/** The verbs of delivery that write; see `WriteSide`. Times are epoch milliseconds. */
interface DeliveryWrites {
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

/** The verbs of admin that write; see `WriteSide`. Times are epoch milliseconds. */
export interface AdminWrites {
  /** The keys that sign the relay's tokens. Makes the first key if there is none yet. */
  tokenKeys(): Promise<TokenKeys>
  rotateTokenKeys(request: TokenKeyRotation & Audited): Promise<TokenKeys>
  /** Queues a job; null: too many jobs have not ended. */
  startJob(request: Audited & { readonly task: JobTask; readonly by: string; readonly nowMs: number }): Promise<Job | null>
  /** Stores an operator event, and the order (`action`) that caused it. Queues the event if the config names an endpoint for operator events. */
  recordOperatorEvent(event: OperatorEvent, nowMs: number, given?: Audited & Posted): Promise<void>
  /** Logs a session of the portal out, for all replicas. */
  endSession(ended: EndedSession): Promise<void>
  /** Adds an order that was carried out outside the store to the audit trail. */
  recordAction(action: OperatorAction): Promise<void>
  /** Tells the part that writes how other clocks differ from ours. Returns why our clock is doubted; null: it is not. */
  lookAtClock(others: OtherClocks): Promise<ClockDoubt | null>
}

export interface Posted {
  /** Whether operators were told of the event before it could be stored. Then it is stored, and not queued for them. */
  readonly isPosted?: boolean | undefined
}

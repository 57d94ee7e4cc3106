import type { BackoffPolicy } from './backoff.ts'
import type { AttemptResult, Delivery, Settlement } from './delivery.ts'
import type { EndpointNotice, EndpointState } from './endpoint-state.ts'

/** The settings of delivery. */
export interface DeliveryRules {
  readonly policy: BackoffPolicy
  /** Concurrent attempts to an endpoint that sets no limit of its own. */
  readonly perEndpoint: number
  /** How many deliveries may be claimed for each concurrent attempt. After a kill, up to this many times an endpoint's concurrency can arrive twice. */
  readonly claimsPerAttempt: number
  /** Operators are told that an endpoint fails once it has failed for this many milliseconds. */
  readonly failingAfterMs: number
}

/** A delivery to be queued. */
export interface QueuedDelivery {
  readonly endpointId: string
  readonly parcelId: number
  readonly sequence: number
  /** The push whose exact bytes it sends; null: the composed event of its sequence. */
  readonly inboxId: number | null
  readonly nowMs: number
}

/** An event that no push reported, to be queued for one endpoint. */
export interface ComposedDelivery extends Omit<QueuedDelivery, 'sequence' | 'inboxId'> {
  readonly body: Uint8Array
}

/** Events of the feed to be queued. `composed`: the bytes of the events that no push reported. */
export interface QueuedFeed {
  readonly composed: readonly { readonly sequence: number; readonly body: Uint8Array }[]
  readonly deliveries: readonly QueuedDelivery[]
}

/** A claimed delivery, by id, and its endpoint. */
export interface ClaimRef {
  readonly deliveryId: number
  readonly endpointId: string
}

/** A claimed delivery without the bytes it sends. */
export interface DeliveryRef extends Delivery, ClaimRef {
  readonly parcelId: number
  readonly sequence: number
  /**
   * When its schedule planned this attempt, epoch milliseconds. This is later than the claim if the delivery was woken early or is a probe.
   */
  readonly plannedAtMs: number
}

/** A delivery claimed by the caller, ready to be attempted. */
export interface ClaimedDelivery extends DeliveryRef {
  /** The previous event of its parcel at this endpoint; 0: there was none. */
  readonly previousSequence: number
  /** Null: the bytes are no longer kept. */
  readonly body: Uint8Array | null
}

/** An attempt that has ended. `attempts` is as claimed, without this one. */
export interface SettledAttempt extends DeliveryRef {
  readonly result: AttemptResult
  /** When the attempt began. */
  readonly atMs: number
  /** Random, from 0 (inclusive) to 1 (exclusive), for the jitter. */
  readonly random: number
}

/** A settled attempt. `attempts` includes this one. */
export interface Settled extends SettledAttempt {
  readonly settlement: Settlement
  /** The health round of its endpoint after this attempt. */
  readonly round: number
}

/** Asks for the next probe of a failing endpoint. */
export interface ProbeRequest {
  readonly endpointId: string
  /** The ids of parcels to leave out. */
  readonly exceptParcelIds: readonly number[]
  /** Leaves out deliveries that were last attempted in this round or later; null: leaves out none. */
  readonly beforeRound: number | null
  readonly nowMs: number
}

/** Asks for the next deliveries of an endpoint. */
export interface NextRequest {
  readonly endpointId: string
  /** The endpoint's health round. Deliveries last attempted in an earlier round have been due since `wokenAtMs`. */
  readonly round: number
  readonly wokenAtMs: number
  /** The ids of claimed deliveries, which must end before anything else of their parcels may go. */
  readonly underWay: readonly number[]
  readonly limit: number
  readonly nowMs: number
}

/** A delivery that may go next. The body is loaded only if it is due. */
export interface NextDelivery extends ClaimedDelivery {
  readonly dueAtMs: number
}

export interface NextDeliveries {
  readonly deliveries: readonly NextDelivery[]
  /** When to look again for deliveries that this look may have passed over, epoch milliseconds; null: it passed over none. */
  readonly lookAgainAtMs: number | null
}

/** The attempts that ended since the last round, and how much may be claimed. */
export interface DispatchRound {
  readonly settled: readonly SettledAttempt[]
  /** The ids of the endpoints that this replica delivers to; it claims nothing for others. Absent: all. */
  readonly held?: readonly string[]
  /**
   * The ids of all other claims, by endpoint id: every delivery that is being sent or waits to be sent. Claims exist only here, and one
   * that is missing from this list has ended. So no claim is lost, and none expires while its attempt is under way.
   */
  readonly inFlight: Readonly<Record<string, readonly number[]>>
  /** How many attempts the rate of an endpoint allows now, by endpoint id; endpoints without a rate are left out. */
  readonly allowance: Readonly<Record<string, number>>
  readonly claimsMax: number
  readonly nowMs: number
}

/** The result of a dispatch round. */
export interface DispatchRoundReport {
  readonly claimed: readonly ClaimedDelivery[]
  /** Claims that must not start any more, because another delivery of their parcel now goes first or may be under way. */
  readonly overtaken: readonly ClaimRef[]
  readonly endpoints: readonly EndpointState[]
  /** The changes that operators are notified of, once each. */
  readonly notices: readonly EndpointNotice[]
  /** The ids of endpoints that have as many claims as they may; more probably waits for them. */
  readonly more: readonly string[]
  /** When the next delivery falls due, epoch milliseconds; null: none waits for its time. */
  readonly nextAtMs: number | null
  /** Whether pushes arrive as fast as they can be recorded, so that their senders wait for every round; absent: that is not known. */
  readonly isBusy?: boolean
}

import type { BackoffPolicy } from './backoff.ts'
import type { AttemptResult, Delivery, Settlement } from './delivery.ts'
import type { ProbeLook } from './endpoint-health.ts'
import type { EndpointNotice, EndpointState } from './endpoint-state.ts'

/** The settings of delivery. */
export interface DeliveryRules {
  readonly policy: BackoffPolicy
  /** How many attempts may run at once to an endpoint that sets no limit. */
  readonly perEndpoint: number
  /**
   * How many deliveries may be claimed for each concurrent attempt. After a kill, this many times an endpoint's concurrency can arrive
   * twice.
   */
  readonly claimsPerAttempt: number
  /** Operators are notified that an endpoint fails after this many milliseconds of failing. */
  readonly failingAfterMs: number
}

/** A delivery to be queued. */
export interface QueuedDelivery {
  readonly endpointId: string
  readonly parcelId: number
  readonly sequence: number
  /** The push whose exact bytes it sends; null: the composed event of its sequence. */
  readonly inboxId: number | null
  /**
   * The sequence of the backfill in which the same entry was told before. An endpoint that was queued that one by a replay is not queued
   * this one too. Null: it was not told before.
   */
  readonly toldIn: number | null
  readonly nowMs: number
}

/** An event that no push has reported, to be queued for one endpoint. */
export interface ComposedDelivery extends Omit<QueuedDelivery, 'sequence' | 'inboxId' | 'toldIn'> {
  readonly body: Uint8Array
}

/** Events of the feed to be queued. `composed`: the bytes of events that no push has reported. */
export interface QueuedFeed {
  readonly composed: readonly { readonly sequence: number; readonly body: Uint8Array }[]
  readonly deliveries: readonly QueuedDelivery[]
}

/** A claimed delivery, by id, and its endpoint. */
export interface ClaimRef {
  readonly deliveryId: number
  readonly endpointId: string
}

/** A claimed delivery without its bytes. */
export interface DeliveryRef extends Delivery, ClaimRef {
  readonly parcelId: number
  readonly sequence: number
  /**
   * When the schedule has planned this attempt, epoch milliseconds. If the delivery was woken early or is a probe, this is later than the
   * claim.
   */
  readonly plannedAtMs: number
}

/** A delivery claimed by the caller, ready to be attempted. */
export interface ClaimedDelivery extends DeliveryRef {
  /** The previous event of its parcel at this endpoint; 0: there was none. */
  readonly previousSequence: number
  /** The bytes; null: they are no longer kept. */
  readonly body: Uint8Array | null
}

/** An attempt that has ended. `attempts` does not count it yet. */
export interface SettledAttempt extends DeliveryRef {
  readonly result: AttemptResult
  /** When the attempt began. */
  readonly atMs: number
  /** Random, from 0 (inclusive) to 1 (exclusive), for the jitter. */
  readonly random: number
}

/** A settled attempt. `attempts` counts it. */
export interface Settled extends SettledAttempt {
  readonly settlement: Settlement
  /** The health round of its endpoint after this attempt. */
  readonly round: number
}

/** Asks for the next probe of a failing endpoint. */
export interface ProbeRequest extends Omit<ProbeLook, 'atMs'> {
  readonly endpointId: string
  readonly nowMs: number
}

/** Asks for the next deliveries of an endpoint. */
export interface NextRequest {
  readonly endpointId: string
  /** The endpoint's health round. A delivery whose last attempt was in an earlier round has been due since `wokenAtMs`. */
  readonly round: number
  readonly wokenAtMs: number
  /** The claimed deliveries, by id. They must end before anything else of their parcels may go. */
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
  /** When to look again for deliveries that this look may have missed, epoch milliseconds; null: it has missed none. */
  readonly lookAgainAtMs: number | null
}

/** The attempts that ended since the last round, and how much may be claimed. */
export interface DispatchRound {
  readonly settled: readonly SettledAttempt[]
  /** The ids of the endpoints to which this replica delivers; it claims nothing for others. Absent: all. */
  readonly held?: readonly string[]
  /**
   * The ids of all other claims, by endpoint id: every delivery that is being sent or waits to be sent. Claims exist only here, so a claim
   * that is missing from this list has ended. No claim is lost, and none expires while its attempt is running.
   */
  readonly inFlight: Readonly<Record<string, readonly number[]>>
  /** How many attempts the rate of an endpoint allows now, by endpoint id. Endpoints without a rate are left out. */
  readonly allowance: Readonly<Record<string, number>>
  readonly claimsMax: number
  readonly nowMs: number
}

/** The result of a dispatch round. */
export interface DispatchRoundReport {
  readonly claimed: readonly ClaimedDelivery[]
  /** Claims that must not start any more: another delivery of their parcel now goes first, or may be under way. */
  readonly overtaken: readonly ClaimRef[]
  readonly endpoints: readonly EndpointState[]
  /** Changes that operators are notified of, once each. */
  readonly notices: readonly EndpointNotice[]
  /** The ids of endpoints that have as many claims as they may. More deliveries probably wait for them. */
  readonly more: readonly string[]
  /** When the next delivery is due, epoch milliseconds; null: none waits for its time. */
  readonly nextAtMs: number | null
  /** Whether pushes arrive as fast as they can be recorded, so that their senders wait for every round. Absent: not known. */
  readonly isBusy?: boolean
}

import type { BackoffPolicy } from './backoff.ts'
import type { AttemptResult, Delivery, Settlement } from './delivery.ts'
import type { EndpointNotice, EndpointState } from './endpoint-state.ts'

/** `perEndpoint`: attempts at the same time to one that says nothing else. */
export interface DeliveryRules {
  readonly policy: BackoffPolicy
  readonly perEndpoint: number
}

export interface QueuedDelivery {
  readonly endpointId: string
  readonly parcelId: number
  readonly sequence: number
  /** The push whose exact bytes it carries; null: the composed event of its sequence. */
  readonly inboxId: number | null
  readonly nowMs: number
}

/** A delivery that was handed out, by its id, and whom it is for. */
export interface ClaimRef {
  readonly deliveryId: number
  readonly endpointId: string
}

export interface DeliveryRef extends Delivery, ClaimRef {
  readonly parcelId: number
  readonly sequence: number
  /** When it was to be attempted by its schedule: later than it was claimed if it was woken, or is a probe. */
  readonly plannedAtMs: number
}

/** A delivery that is somebody's to attempt. */
export interface ClaimedDelivery extends DeliveryRef {
  /** 0: there was none. */
  readonly previousSequence: number
  /** Null: it is no longer kept. */
  readonly body: Uint8Array | null
}

/** What became of a claimed delivery; `attempts` as it was claimed. */
export interface SettledAttempt extends DeliveryRef {
  readonly result: AttemptResult
  /** When the attempt began. */
  readonly atMs: number
  /** From 0 (inclusive) to 1 (exclusive): what jitter is made of. */
  readonly random: number
}

/** An attempt, and what it made of its delivery; `attempts` with this one counted. */
export interface Settled extends SettledAttempt {
  readonly settlement: Settlement
  /** Of its endpoint, after this attempt. */
  readonly round: number
}

export interface ProbeRequest {
  readonly endpointId: string
  /** A parcel, by id, that is left out; null: none is. */
  readonly exceptParcelId: number | null
  readonly nowMs: number
}

export interface NextRequest {
  readonly endpointId: string
  /** Of the endpoint's health: what was last attempted in an earlier round is due since it was woken. */
  readonly round: number
  readonly wokenAtMs: number
  /** The parcels of what is claimed: nothing of theirs goes before that has ended. */
  readonly besides: readonly number[]
  readonly limit: number
  readonly nowMs: number
}

/** Claimed deliveries of an endpoint: in the order of their parcels something else may have come before them since. */
export interface ReviewedClaims {
  readonly parcelIds: readonly number[]
  /** The ids of those that are not the first of their parcel any more, or not the only ones of it that are claimed, or have ended. */
  readonly overtaken: readonly number[]
}

/** Of what is not due yet the body is not looked for. */
export interface NextDelivery extends ClaimedDelivery {
  readonly dueAtMs: number
}

/** What ended since the last turn, and how much more may be started. */
export interface DispatchRound {
  readonly settled: readonly SettledAttempt[]
  /**
   * The ids of what is claimed besides these, by endpoint id: everything that is under way or waits to be sent, and nothing else. A claim is
   * nowhere but with who holds it, so it ends when he says no more of it, and none is lost or lapses while an attempt is under way.
   */
  readonly inFlight: Readonly<Record<string, readonly number[]>>
  /** How many attempts an endpoint's rate allows now, by id; those without a rate are not in it. */
  readonly allowance: Readonly<Record<string, number>>
  readonly claimsMax: number
  readonly nowMs: number
}

export interface DispatchRoundReport {
  readonly claimed: readonly ClaimedDelivery[]
  /** What was claimed before and must not be begun any more: by now something else of its parcel goes first, or may be under way. */
  readonly overtaken: readonly ClaimRef[]
  readonly endpoints: readonly EndpointState[]
  /** What operators should hear of, once each. */
  readonly notices: readonly EndpointNotice[]
  /** Endpoints, by id, that have all they may at once: mostly there is more. */
  readonly more: readonly string[]
  /** When something else falls due; null: nothing waits that has room to go. */
  readonly nextAtMs: number | null
  /** Whether pushes come as fast as they are recorded, so that their senders wait for every turn; absent: that is not known. */
  readonly isBusy?: boolean
}

import { hash } from 'node:crypto'
import type { SentOrder } from '../history/order-context.ts'
import { type AttemptResult, type BackoffPolicy, type Delivery, isOwnFailure, type Settlement } from './delivery.ts'
import type { ProbeLook } from './endpoint-health.ts'
import type { EndpointNotice, EndpointState } from './endpoint-state.ts'
import type { WatchdogEventName } from './watchdog-event.ts'

export interface DeliveryRules {
  readonly policy: BackoffPolicy
  /** How many attempts may run at once to an endpoint without its own limit. */
  readonly perEndpoint: number
  /** How many deliveries may be claimed for each concurrent attempt. After a kill, all claimed deliveries may arrive a second time. */
  readonly claimsPerAttempt: number
  /** Operators are notified when an endpoint has failed for this long. */
  readonly failingAfterMs: number
}

export interface QueuedDelivery {
  readonly endpointId: string
  readonly parcelId: number
  readonly sequence: number
  /** The push whose exact bytes are sent; null: the composed event with this sequence is sent. */
  readonly inboxId: number | null
  /**
   * The sequence of an earlier backfill event about the same entry; null: there was none. If a replay has queued the earlier event for the
   * endpoint, this delivery is not queued.
   */
  readonly toldIn: number | null
  readonly nowMs: number
}

/** An event that no push has reported, to be queued for one endpoint. `body`: its bytes. */
export interface ComposedDelivery extends Omit<QueuedDelivery, 'sequence' | 'inboxId' | 'toldIn'> {
  readonly body: Uint8Array
}

/** Events of the feed to be queued. `composed`: the bytes of events that no push has reported. */
export interface QueuedFeed {
  readonly composed: readonly { readonly sequence: number; readonly body: Uint8Array }[]
  readonly deliveries: readonly QueuedDelivery[]
}

export interface ClaimRef {
  readonly deliveryId: number
  readonly endpointId: string
}

/** A claimed delivery without its bytes. */
export interface DeliveryRef extends Delivery, ClaimRef {
  readonly parcelId: number
  readonly sequence: number
  /** When this attempt is due by the schedule, epoch milliseconds. A woken delivery or a probe may be claimed earlier. */
  readonly plannedAtMs: number
}

/** A delivery claimed by the caller, ready to be attempted. */
export interface ClaimedDelivery extends DeliveryRef {
  /** The sequence of the previous event of its parcel at this endpoint; 0: there was none. */
  readonly previousSequence: number
  /** The bytes to send; null: they are no longer stored. */
  readonly body: Uint8Array | null
  /** What is said of the order of its parcel when it is claimed; null: nothing. */
  readonly order: SentOrder | null
  /** Absent: it is an entry, or an operator event. */
  readonly event?: WatchdogEventName
}

/** An attempt that has ended. `attempts` does not count it yet. */
export interface SettledAttempt extends DeliveryRef {
  readonly result: AttemptResult
  /** When the attempt began. */
  readonly atMs: number
  /** A random number from 0 (inclusive) to 1 (exclusive), for the jitter. */
  readonly random: number
}

/** A settled attempt. `attempts` counts it. */
export interface Settled extends SettledAttempt {
  readonly settlement: Settlement
  /** The health round of its endpoint after this attempt. */
  readonly round: number
}

export interface ProbeRequest extends Omit<ProbeLook, 'atMs'> {
  readonly endpointId: string
  readonly nowMs: number
}

export interface NextRequest {
  readonly endpointId: string
  /** The endpoint's health round. A delivery whose last attempt was in an earlier round has been due since `wokenAtMs`. */
  readonly round: number
  readonly wokenAtMs: number
  /** The ids of the claimed deliveries. While a delivery is claimed, no other delivery of its parcel may go. */
  readonly underWay: readonly number[]
  readonly limit: number
  readonly nowMs: number
}

/** A delivery that may go next. Its body is loaded only if the delivery is due. */
export interface NextDelivery extends ClaimedDelivery {
  readonly dueAtMs: number
}

export interface NextDeliveries {
  readonly deliveries: readonly NextDelivery[]
  /** When to ask again, epoch milliseconds, because this answer may lack deliveries; null: this answer lacks none. */
  readonly lookAgainAtMs: number | null
}

/** The attempts that ended since the last round, and the limits for new claims. */
export interface DispatchRound {
  readonly settled: readonly SettledAttempt[]
  /** The ids of the endpoints to which this replica delivers. It claims nothing for other endpoints. Absent: it delivers to all. */
  readonly held?: readonly string[]
  /**
   * The ids of the claimed deliveries that are being sent or wait to be sent, by endpoint id. Claims are not stored, so a claim that is missing here
   * has ended.
   */
  readonly inFlight: Readonly<Record<string, readonly number[]>>
  /** How many attempts the rate of each endpoint allows now, by endpoint id. Endpoints without a rate are left out. */
  readonly allowance: Readonly<Record<string, number>>
  readonly claimsMax: number
  readonly nowMs: number
}

export interface DispatchRoundReport {
  readonly claimed: readonly ClaimedDelivery[]
  /** Claimed deliveries that must not be attempted any more, because another delivery of their parcel goes first or may be under way. */
  readonly overtaken: readonly ClaimRef[]
  readonly endpoints: readonly EndpointState[]
  /** Changes of which operators must be notified. Each is reported once. */
  readonly notices: readonly EndpointNotice[]
  /** The ids of endpoints that have as many claims as allowed. More deliveries probably wait for them. */
  readonly more: readonly string[]
  /** When the next delivery is due, epoch milliseconds; null: no delivery waits for its time. */
  readonly nextAtMs: number | null
  /** Whether pushes arrive as fast as they can be recorded, so that each round makes pushes wait. Absent: not known. */
  readonly isBusy?: boolean
}

/** Failed attempts at an endpoint with the same answer, or with no answer for the same reason. Times are epoch milliseconds. */
export interface FailureGroup {
  /** Null: there was no answer, for the reason in `reason`. */
  readonly status: number | null
  readonly reason: string | null
  /** The first bytes of the latest answer in the group. */
  readonly answerStart: Uint8Array
  readonly count: number
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** The delivery of the latest failed attempt in the group. */
  readonly deliveryId: number
}

/** Failed attempts to add to the stored group with the same digest. */
export interface FailureNote extends FailureGroup {
  readonly endpointId: string
  /** Identifies the group within its endpoint. */
  readonly digest: string
}

/** How many groups are kept for each endpoint: the ones with the latest failures. */
export const FAILURE_GROUPS_MAX = 20

/** If a group has had no failure for this long, its next failure starts the count again. */
export const FAILURES_COUNT_FOR_MS = 30 * 24 * 60 * 60 * 1000

/**
 * Groups failed attempts, sorted by endpoint and digest. Leaves out attempts that failed because of the relay itself, because they say
 * nothing about the endpoint.
 */
export function groupFailures(
  attempts: readonly Pick<SettledAttempt, 'endpointId' | 'deliveryId' | 'result' | 'atMs'>[],
): readonly FailureNote[] {
  const groups = new Map<string, FailureNote>()
  for (const { endpointId, deliveryId, result, atMs } of attempts) {
    if (result.kind === 'accepted' || isOwnFailure(result)) continue
    const [status, reason] = result.kind === 'failed' ? [null, result.reason] : [result.status, null]
    const digest = digestOf(result)
    const key = `${endpointId}/${digest}`
    const known = groups.get(key)
    const isLast = known === undefined || atMs >= known.lastAtMs
    groups.set(key, {
      endpointId,
      digest,
      status,
      reason,
      answerStart: isLast ? result.answerStart : known.answerStart,
      deliveryId: isLast ? deliveryId : known.deliveryId,
      count: (known?.count ?? 0) + 1,
      firstAtMs: Math.min(known?.firstAtMs ?? atMs, atMs),
      lastAtMs: Math.max(known?.lastAtMs ?? atMs, atMs),
    })
  }
  return [...groups.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
}

/** Numbers and ids in answers. Grouping ignores them, because an answer often contains a time or the id of a request. */
const NUMBERS = /\b(?=[a-z-]*\d)[0-9a-f-]{8,}\b|\d+/gi
const COMPARED_BYTES = 256

function digestOf(result: Exclude<AttemptResult, { kind: 'accepted' }>): string {
  const words = Buffer.from(result.answerStart).toString('latin1', 0, COMPARED_BYTES).replace(NUMBERS, '#')
  return hash('sha256', result.kind === 'failed' ? result.reason : `${result.status} ${words}`, 'hex').slice(0, 24)
}

/** Since when the store fails the rounds of deliveries, and how many results of attempts are in memory only. */
export interface Undelivered {
  readonly sinceMs: number
  readonly results: number
}

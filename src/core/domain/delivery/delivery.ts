import { clampRetryAfterMs } from '../instant.ts'

/** The outcome of an attempt. An answer counts when its headers are complete. Its body does not matter. */
export type AttemptOutcome =
  /** A 2xx status. `byNextKey`: the endpoint's next key, encrypted, if the accepted request was signed with it (`x-service-hmac-sha256`). */
  | { readonly kind: 'accepted'; readonly status: number; readonly byNextKey?: string }
  /** Any other status. A redirect counts as a rejection, because the relay follows none. */
  | { readonly kind: 'rejected'; readonly status: number; readonly retryAfterMs: number | null }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly detail: string }

type Limiting = Extract<AttemptOutcome, { readonly kind: 'rejected' }>

/**
 * Why there was no answer. `connection_refused`: nobody listens at the address, or there is no route to it. `forbidden`: the relay may not send to
 * the address. `interrupted`: the relay stopped, which says nothing about the endpoint. `withdrawn`: nothing was sent, because the endpoint was
 * changed after the attempt began. `bad_response`: the answer is not valid HTTP or is too long. `body_gone`: the bytes to send are no longer stored
 * (`retention.raw`), and no others may be sent instead. `proxy`: the proxy could not be reached, or refused the request.
 */
export const FAILURE_REASONS = [
  'timeout',
  'dns',
  'connection_refused',
  'reset',
  'certificate_expired',
  'certificate_not_yet_valid',
  'certificate_wrong_name',
  'certificate_self_signed',
  'certificate_untrusted',
  'tls_protocol',
  'tls',
  'proxy',
  'bad_response',
  'forbidden',
  'interrupted',
  'withdrawn',
  'network',
  'body_gone',
] as const
export type FailureReason = (typeof FAILURE_REASONS)[number]

/** The result of an attempt, with the facts that are stored for operators. */
export type AttemptResult = AttemptOutcome & {
  readonly durationMs: number
  readonly answerStart: Uint8Array
  /** The IP address (the endpoint's or its proxy's) that accepted or refused the connection. Absent: no address did either. */
  readonly address?: string
}

/**
 * How many deliveries are claimed for each concurrent attempt: one is attempted, and two wait. When an attempt ends, the next one starts before
 * the result is stored. So attempts go on while a round stores results.
 */
export const CLAIMS_PER_ATTEMPT = 3
/** The same number for a store on a database server. There each round costs round trips and a commit, so larger rounds cost less per delivery. */
export const CLAIMS_PER_ATTEMPT_ON_SERVER = 8

export const ANSWER_KEPT_BYTES = 1024

/** The facts about a delivery that decide its next state. */
export interface Delivery {
  /** The number of attempts, including the one that is being settled. A replay starts again at 0. */
  readonly attempts: number
  /** How many of the attempts did not count towards the schedule. */
  readonly spared: number
  /** How many of the attempts the endpoint refused because it limits us (`isLimit`). */
  readonly limited: number
  /** When an attempt first failed after the delivery was queued or last replayed, epoch milliseconds; null: no attempt has failed. */
  readonly firstFailedAtMs: number | null
}

/** The facts about the health of the endpoint that decide the next state of a delivery. */
export interface EndpointRecord {
  /** When the endpoint last accepted a delivery, epoch milliseconds; null: never. */
  readonly lastSuccessAtMs: number | null
  /** How long all attempts have failed, since the endpoint last accepted a delivery, was created or was enabled. */
  readonly failedForMs: number
}

/** An endpoint is disabled when all attempts have failed for this long (DOMAIN 7.4). */
export const FAILING_MAX_MS = 120 * 60 * 60 * 1000

/** A delivery that was refused this often because the endpoint limits us goes by its schedule, if others are accepted (DOMAIN 7.4). */
const LIMITED_MAX = 10

/**
 * Why a delivery was given up. `receiver_refused`: the last answer was not a 2xx. `unreachable`: there was no answer. `forbidden`: the relay may not
 * send to the address. `body_gone`: the bytes to send are no longer stored.
 */
export type DeadReason = 'receiver_refused' | 'unreachable' | 'forbidden' | 'body_gone'

/** Why an endpoint was disabled: it answered 410, or all attempts failed for 120 h. */
export type HeldReason = 'gone' | 'failing'

export type Settlement =
  | { readonly state: 'delivered' }
  | { readonly state: 'retrying'; readonly nextAttemptAtMs: number }
  | { readonly state: 'dead'; readonly reason: DeadReason }
  | { readonly state: 'held'; readonly reason: HeldReason }

/*
 * The life of a delivery. It is queued in the same transaction as the entry that it reports, and is due at once. But it is attempted only when
 * its endpoint is enabled, and every earlier delivery of its parcel to this endpoint is delivered, dead or cancelled.
 *
 *   queued ── attempt ──┬─ accepted ─────────────────────────────────────────────► delivered
 *                       ├─ 410, or failing for 120 h: the endpoint is disabled ──► held ── enabled again ──► queued
 *                       ├─ interrupted by the relay ─────────────────────────────► retrying, due at once
 *                       ├─ its bytes are no longer kept ─────────────────────────► dead
 *                       ├─ refused for good, by an endpoint with refusals: skip ─► dead (`endsByRefusal`)
 *                       ├─ refused because the endpoint limits us (`isLimit`) ──► retrying, as planned before
 *                       ├─ made early, or as a probe ────────────────────────────► retrying, as planned before
 *                       ├─ the schedule has a wait left ─────────────────────────► retrying ── wait over ──► attempt
 *                       ├─ no wait left, no success of the endpoint since its first failure ► retrying, at the last wait
 *                       └─ no wait left ─────────────────────────────────────────► dead
 *
 * While the endpoint is failing only probes are attempted, and its first success makes everything that waits due at once (`endpoint-health`).
 * Removing the endpoint cancels everything queued, retrying or held. A delivered, dead or cancelled delivery has ended. It is sent again only if
 * somebody replays it. Then it is queued again, with the same `webhook-id`.
 */

/** Whether the relay itself caused the failure. Such a failure says nothing about the endpoint. */
export function isOwnFailure(outcome: AttemptOutcome): boolean {
  return isUnsent(outcome) || (outcome.kind === 'failed' && outcome.reason === 'body_gone')
}

function isUnsent(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'failed' && (outcome.reason === 'interrupted' || outcome.reason === 'withdrawn')
}

/** Whether nothing was sent, because the endpoint was changed meanwhile. */
export function isWithdrawn(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'failed' && outcome.reason === 'withdrawn'
}

/** Whether the endpoint limits how much it is sent: it says nothing about the event. */
export function isLimit(outcome: AttemptOutcome): outcome is Limiting {
  return outcome.kind === 'rejected' && (outcome.status === 429 || (outcome.status === 503 && outcome.retryAfterMs !== null))
}

/**
 * Whether an answer that limits us is about the endpoint, so that it slows the endpoint down and uses no step of the schedule. A delivery that is
 * refused again and again while others are accepted is itself the cause (DOMAIN 7.4).
 */
export function slowsEndpoint(delivery: Delivery, outcome: AttemptOutcome, health: EndpointRecord): outcome is Limiting {
  return isLimit(outcome) && !(delivery.limited >= LIMITED_MAX && hasSucceededSince(delivery, health))
}

/** Whether the endpoint has accepted another delivery after the first failure of this one. */
function hasSucceededSince({ firstFailedAtMs }: Delivery, { lastSuccessAtMs }: EndpointRecord): boolean {
  return firstFailedAtMs !== null && lastSuccessAtMs !== null && lastSuccessAtMs > firstFailedAtMs
}

/** An endpoint that answers 410 wants no more deliveries. */
export function isGone(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'rejected' && outcome.status === 410
}

/** The statuses that reject the event itself, not the key, the URL or the time. So it is useless to send the event again. */
const REFUSED_FOR_GOOD = [400, 409, 413, 415, 422]

/**
 * Whether an answer ends its delivery, so that its parcel's next event may go. The endpoint must have asked for this (`refusals: skip`),
 * and must not be failing. A failing endpoint refuses everything, so its answers say nothing about the event (DOMAIN 7.4).
 */
export function endsByRefusal(
  { refusals, isFailing }: { refusals: 'wait' | 'skip'; isFailing: boolean },
  outcome: AttemptOutcome,
): boolean {
  return refusals === 'skip' && !isFailing && outcome.kind === 'rejected' && REFUSED_FOR_GOOD.includes(outcome.status)
}

/**
 * Counts an attempt, unless the relay itself caused its failure.
 *
 * @param isSpared whether the attempt was made before its time or as a probe, or its answer slows the endpoint down. Such an attempt does not count
 * towards the schedule.
 */
export function countAttempt(delivery: Delivery, outcome: AttemptOutcome, nowMs: number, isSpared = false): Delivery {
  const { attempts, spared, limited, firstFailedAtMs } = delivery
  if (isOwnFailure(outcome)) return { attempts, spared, limited, firstFailedAtMs }
  return {
    attempts: attempts + 1,
    spared: spared + (isSpared ? 1 : 0),
    limited: limited + (isLimit(outcome) ? 1 : 0),
    firstFailedAtMs: outcome.kind === 'accepted' ? firstFailedAtMs : (firstFailedAtMs ?? nowMs),
  }
}

/**
 * Decides the next state of a delivery after an attempt (DOMAIN 7.4). `held`: the endpoint is now disabled, and the delivery waits until it is
 * enabled.
 *
 * When the schedule is used up, a delivery is given up only if the endpoint has accepted another delivery after the first failure of this one.
 * Otherwise the endpoint may be down, and an endpoint that is down for days must lose nothing.
 *
 * @param delivery with this attempt counted, see `countAttempt`.
 *
 * @param health of the endpoint before this attempt.
 *
 * @param random from 0 (inclusive) to 1 (exclusive).
 *
 * @param plannedAtMs when the scheduled attempt is due, if this attempt was spared (`countAttempt`); null: this was the scheduled attempt.
 */
export function settle(
  delivery: Delivery,
  outcome: AttemptOutcome,
  nowMs: number,
  policy: BackoffPolicy,
  health: EndpointRecord,
  random: number,
  plannedAtMs: number | null = null,
): Settlement {
  if (outcome.kind === 'accepted') return { state: 'delivered' }
  if (isUnsent(outcome)) return { state: 'retrying', nextAttemptAtMs: nowMs }
  if (outcome.kind === 'failed' && outcome.reason === 'body_gone') return { state: 'dead', reason: 'body_gone' }
  if (isGone(outcome)) return { state: 'held', reason: 'gone' }
  if (health.failedForMs >= FAILING_MAX_MS) return { state: 'held', reason: 'failing' }

  const retryAfterMs = outcome.kind === 'rejected' ? outcome.retryAfterMs : null
  if (plannedAtMs !== null) {
    return { state: 'retrying', nextAttemptAtMs: nowMs + obeyRetryAfterMs(Math.max(0, plannedAtMs - nowMs), retryAfterMs) }
  }
  const scheduledMs = nextDelayMs(delivery.attempts - delivery.spared, policy, random)
  if (scheduledMs === null && hasSucceededSince(delivery, health)) return { state: 'dead', reason: deadReason(outcome) }
  const delayMs = scheduledMs ?? lastDelayMs(policy, random)
  return { state: 'retrying', nextAttemptAtMs: nowMs + obeyRetryAfterMs(delayMs, retryAfterMs) }
}

function deadReason(outcome: Exclude<AttemptOutcome, { kind: 'accepted' }>): DeadReason {
  if (outcome.kind === 'rejected') return 'receiver_refused'
  return outcome.reason === 'forbidden' ? 'forbidden' : 'unreachable'
}

/** The waits between the attempts of a delivery (CONTRACT `delivery`). */
export interface BackoffPolicy {
  /** The waits after the first attempt, the second, and so on, in milliseconds; never empty. */
  readonly scheduleMs: readonly number[]
  /** The random share of a wait, from 0 to 1. It spreads retries. With 0.2, a wait of 10 s becomes 9 s to 11 s. */
  readonly jitter: number
}

/** Returns the wait after attempt number `attempts`; null: the schedule has no more waits. `random`: from 0 to 1 (exclusive). */
export function nextDelayMs(attempts: number, policy: BackoffPolicy, random: number): number | null {
  const waitMs = policy.scheduleMs[attempts - 1]
  return waitMs === undefined ? null : jittered(waitMs, policy.jitter, random)
}

/** Returns the wait for a delivery that may not be given up although its schedule is used up: the schedule's last wait (DOMAIN 7.4). */
export function lastDelayMs(policy: BackoffPolicy, random: number): number {
  return jittered(policy.scheduleMs.at(-1) ?? 0, policy.jitter, random)
}

/**
 * Returns the longer of the schedule's wait and the receiver's `Retry-After`, which counts as at least 1 s and at most 1 h. If the shorter
 * one counted, a receiver that always asks for one second would use up a schedule of days at once.
 */
export function obeyRetryAfterMs(delayMs: number, retryAfterMs: number | null): number {
  return retryAfterMs === null ? delayMs : Math.max(delayMs, clampRetryAfterMs(retryAfterMs))
}

function jittered(waitMs: number, jitter: number, random: number): number {
  return Math.round(waitMs * (1 + jitter * (random - 0.5)))
}

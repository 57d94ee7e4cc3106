import { type BackoffPolicy, lastDelayMs, nextDelayMs, obeyRetryAfterMs } from './backoff.ts'

/** What an attempt came to, as far as the fate of the delivery goes. The status is taken from a complete header block; the body has no say. */
export type AttemptOutcome =
  /** A 2xx. `byNextKey`: the next key, sealed, if it was that which signed the header of the specification. */
  | { readonly kind: 'accepted'; readonly status: number; readonly byNextKey?: string }
  /** Any other answer, redirects included: they are never followed. */
  | { readonly kind: 'rejected'; readonly status: number; readonly retryAfterMs: number | null }
  /** No answer. */
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly detail: string }

/**
 * Why there was no answer. `forbidden`: we may not send there. `interrupted`: we ourselves stopped, which says nothing of the endpoint.
 * `bad_response`: what answered speaks no HTTP, or too much of it. `body_gone`: the bytes it carries are no longer kept (`retention.raw`), and
 * nothing else may be sent in their stead. `proxy`: the proxy that leads there could not be reached or refused.
 */
export type FailureReason =
  | 'timeout'
  | 'dns'
  | 'refused'
  | 'reset'
  | 'tls'
  | 'proxy'
  | 'bad_response'
  | 'forbidden'
  | 'interrupted'
  | 'network'
  | 'body_gone'

/** An attempt as it is kept for operators. */
export type AttemptResult = AttemptOutcome & {
  readonly durationMs: number
  /** The first bytes of the answer's body as they came, at most `ANSWER_KEPT_BYTES`; empty when there were none. */
  readonly answerStart: Uint8Array
}

/**
 * How many deliveries may be claimed for each that may be attempted at the same time: those that wait begin when others end, before what
 * ended is written down. With two that wait for one that is attempted, what is written down together is as much as is attempted together.
 */
export const CLAIMS_PER_ATTEMPT = 3

/** How much of an answer is kept. */
export const ANSWER_KEPT_BYTES = 1024

/** What becomes of a delivery depends on this much of it. */
export interface Delivery {
  /** Attempts made, the one being settled included: at least 1. A replay starts again at 0. */
  readonly attempts: number
  /** How many of them were not on its schedule: they use up nothing of it. */
  readonly spared: number
  /** When its first attempt failed since it was queued or last replayed, epoch milliseconds; `null`: none has. */
  readonly firstFailedAtMs: number | null
}

/** What of its endpoint decides about a delivery, up to the attempt. */
export interface EndpointRecord {
  /** When it last accepted anything, epoch milliseconds; `null`: never. */
  readonly lastSuccessAtMs: number | null
  /** How long it has been seen to fail at everything, in milliseconds, since it last accepted something, was created or was enabled. */
  readonly failedForMs: number
}

/** After this long with nothing but failures an endpoint is disabled (DOMAIN 7.4). */
export const FAILING_MAX_MS = 120 * 60 * 60 * 1000

/**
 * Dead letters tell who would not: `receiver_refused`: it answered, and not with a 2xx. `unreachable`: no answer was to be had.
 * `forbidden`: the address is none we may send to. `body_gone`: there is nothing left to send.
 */
export type DeadReason = 'receiver_refused' | 'unreachable' | 'forbidden' | 'body_gone'

/** Why an endpoint is disabled: it answered 410, or gave nothing but failures for 120 h. */
export type HeldReason = 'gone' | 'failing'

export type Settlement =
  | { readonly state: 'delivered' }
  | { readonly state: 'retrying'; readonly nextAttemptAtMs: number }
  | { readonly state: 'dead'; readonly reason: DeadReason }
  | { readonly state: 'held'; readonly reason: HeldReason }

/*
 * The life of a delivery. It is queued with the entry it carries, in the same transaction, and due at once; but it is attempted only when
 * every earlier delivery of its parcel to its endpoint is delivered, dead or cancelled, and its endpoint is enabled.
 *
 *   queued ── attempt ──┬─ accepted ─────────────────────────────────────────────► delivered
 *                       ├─ 410, or failing for 120 h: the endpoint is disabled ──► held ── enabled again ──► queued
 *                       ├─ interrupted by ourselves ─────────────────────────────► retrying, due at once
 *                       ├─ its bytes are no longer kept ─────────────────────────► dead
 *                       ├─ before its time, or a probe ──────────────────────────► retrying, as planned before
 *                       ├─ the schedule has a wait left ─────────────────────────► retrying ── wait over ──► attempt
 *                       ├─ used up, no success of the endpoint since its first failure ► retrying, at the last wait
 *                       └─ used up ──────────────────────────────────────────────► dead
 *
 * While the endpoint is failing only probes are attempted, and its first success makes everything that waits due at once (`endpoint-health`).
 * Removing the endpoint cancels whatever is queued, retrying or held. Dead and cancelled deliveries can be replayed: queued again, with the
 * same `webhook-id`. Delivered, dead and cancelled are ends; of the others, none can stay with its next attempt in the past while workers run.
 */

/** Whether the endpoint had no part in it. */
export function isOwnFailure(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'failed' && (outcome.reason === 'interrupted' || outcome.reason === 'body_gone')
}

/** Whether its endpoint says that there is none any more, and wants nothing. */
export function isGone(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'rejected' && outcome.status === 410
}

/**
 * A delivery after an attempt, with that attempt counted; one in which its endpoint had no part is none.
 * @param isSpared it was made before its time, or as a probe.
 */
export function countAttempt(delivery: Delivery, outcome: AttemptOutcome, nowMs: number, isSpared = false): Delivery {
  const { attempts, spared, firstFailedAtMs } = delivery
  if (isOwnFailure(outcome)) return { attempts, spared, firstFailedAtMs }
  return {
    attempts: attempts + 1,
    spared: spared + (isSpared ? 1 : 0),
    firstFailedAtMs: outcome.kind === 'accepted' ? firstFailedAtMs : (firstFailedAtMs ?? nowMs),
  }
}

/**
 * Decides the fate of a delivery after an attempt (DOMAIN 7.4). Every input is an argument, time and chance included; the return type lists
 * every outcome. `held` asks for two things: the endpoint is disabled, and the delivery waits for it. A success of the endpoint before the
 * delivery's own first failure does not let it die: an outage may have begun between the two, and who is down for days must lose nothing.
 * @param delivery with this attempt counted, see `countAttempt`.
 * @param health of the endpoint before this attempt.
 * @param random from 0 (inclusive) to 1 (exclusive).
 * @param plannedAtMs the attempt was not on the schedule, which goes on with the one planned for then; `null`: it was on the schedule.
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
  if (outcome.kind === 'failed' && outcome.reason === 'interrupted') return { state: 'retrying', nextAttemptAtMs: nowMs }
  if (outcome.kind === 'failed' && outcome.reason === 'body_gone') return { state: 'dead', reason: 'body_gone' }
  if (isGone(outcome)) return { state: 'held', reason: 'gone' }
  if (health.failedForMs >= FAILING_MAX_MS) return { state: 'held', reason: 'failing' }

  const retryAfterMs = outcome.kind === 'rejected' ? outcome.retryAfterMs : null
  if (plannedAtMs !== null) {
    return { state: 'retrying', nextAttemptAtMs: nowMs + obeyRetryAfterMs(Math.max(0, plannedAtMs - nowMs), retryAfterMs) }
  }
  const scheduledMs = nextDelayMs(delivery.attempts - delivery.spared, policy, random)
  const { firstFailedAtMs } = delivery
  const succeededSince = firstFailedAtMs !== null && health.lastSuccessAtMs !== null && health.lastSuccessAtMs > firstFailedAtMs
  if (scheduledMs === null && succeededSince) return { state: 'dead', reason: deadReason(outcome) }
  const delayMs = scheduledMs ?? lastDelayMs(policy, random)
  return { state: 'retrying', nextAttemptAtMs: nowMs + obeyRetryAfterMs(delayMs, retryAfterMs) }
}

function deadReason(outcome: Exclude<AttemptOutcome, { kind: 'accepted' }>): DeadReason {
  if (outcome.kind === 'rejected') return 'receiver_refused'
  return outcome.reason === 'forbidden' ? 'forbidden' : 'unreachable'
}

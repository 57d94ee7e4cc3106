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
  /** When its first attempt failed since it was queued or last replayed, epoch milliseconds; `null`: none has. */
  readonly firstFailedAtMs: number | null
}

/** How its endpoint fared up to the attempt; epoch milliseconds. */
export interface EndpointHealth {
  /** When it last accepted anything; `null`: never. */
  readonly lastSuccessAtMs: number | null
  /** The first failure since it last accepted something, was created or was enabled; `null`: there was none. */
  readonly failingSinceMs: number | null
}

/** An endpoint that was just created or enabled: what was before is not held against it. */
export const freshHealth: EndpointHealth = { lastSuccessAtMs: null, failingSinceMs: null }

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
 *                       ├─ the schedule has a wait left ─────────────────────────► retrying ── wait over ──► attempt
 *                       ├─ used up, no success of the endpoint since its first failure ► retrying, at the last wait
 *                       └─ used up ──────────────────────────────────────────────► dead
 *
 * Removing the endpoint cancels whatever is queued, retrying or held. Dead and cancelled deliveries can be replayed: queued again, with the
 * same `webhook-id`. Delivered, dead and cancelled are ends; of the others, none can stay with its next attempt in the past while workers run.
 */

/** Whether the endpoint had no part in it. */
function isOurs(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'failed' && (outcome.reason === 'interrupted' || outcome.reason === 'body_gone')
}

/** Whether its endpoint says that there is none any more, and wants nothing. */
export function isGone(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'rejected' && outcome.status === 410
}

/** A delivery after an attempt, with that attempt counted; one in which its endpoint had no part is none. */
export function countAttempt({ attempts, firstFailedAtMs }: Delivery, outcome: AttemptOutcome, nowMs: number): Delivery {
  if (isOurs(outcome)) return { attempts, firstFailedAtMs }
  return { attempts: attempts + 1, firstFailedAtMs: outcome.kind === 'accepted' ? firstFailedAtMs : (firstFailedAtMs ?? nowMs) }
}

/**
 * Decides the fate of a delivery after an attempt (DOMAIN 7.4). Every input is an argument, time and chance included; the return type lists
 * every outcome. `held` asks for two things: the endpoint is disabled, and the delivery waits for it. A success of the endpoint before the
 * delivery's own first failure does not let it die: an outage may have begun between the two, and who is down for days must lose nothing.
 * @param delivery with this attempt counted, see `countAttempt`.
 * @param health of the endpoint before this attempt.
 * @param random from 0 (inclusive) to 1 (exclusive).
 */
export function settle(
  delivery: Delivery,
  outcome: AttemptOutcome,
  nowMs: number,
  policy: BackoffPolicy,
  health: EndpointHealth,
  random: number,
): Settlement {
  if (outcome.kind === 'accepted') return { state: 'delivered' }
  if (outcome.kind === 'failed' && outcome.reason === 'interrupted') return { state: 'retrying', nextAttemptAtMs: nowMs }
  if (outcome.kind === 'failed' && outcome.reason === 'body_gone') return { state: 'dead', reason: 'body_gone' }
  if (isGone(outcome)) return { state: 'held', reason: 'gone' }
  if (health.failingSinceMs !== null && nowMs - health.failingSinceMs >= FAILING_MAX_MS) return { state: 'held', reason: 'failing' }

  const scheduledMs = nextDelayMs(delivery.attempts, policy, random)
  const { firstFailedAtMs } = delivery
  const succeededSince = firstFailedAtMs !== null && health.lastSuccessAtMs !== null && health.lastSuccessAtMs > firstFailedAtMs
  if (scheduledMs === null && succeededSince) return { state: 'dead', reason: deadReason(outcome) }
  const delayMs = scheduledMs ?? lastDelayMs(policy, random)
  return {
    state: 'retrying',
    nextAttemptAtMs: nowMs + obeyRetryAfterMs(delayMs, outcome.kind === 'rejected' ? outcome.retryAfterMs : null),
  }
}

function deadReason(outcome: Exclude<AttemptOutcome, { kind: 'accepted' }>): DeadReason {
  if (outcome.kind === 'rejected') return 'receiver_refused'
  return outcome.reason === 'forbidden' ? 'forbidden' : 'unreachable'
}

/** The health of an endpoint when the clock was put back: what lies in a future that was taken back would count as later than all to come. */
export function healthByClock({ lastSuccessAtMs, failingSinceMs }: EndpointHealth, nowMs: number): EndpointHealth {
  const past = (atMs: number | null) => (atMs === null ? null : Math.min(atMs, nowMs))
  return { lastSuccessAtMs: past(lastSuccessAtMs), failingSinceMs: past(failingSinceMs) }
}

/** The health of an endpoint after an attempt: one success ends the failing, however sporadic it is; what it had no part in says nothing. */
export function healthAfter(health: EndpointHealth, outcome: AttemptOutcome, nowMs: number): EndpointHealth {
  if (outcome.kind === 'accepted') {
    const isKnown = health.lastSuccessAtMs === nowMs && health.failingSinceMs === null
    return isKnown ? health : { lastSuccessAtMs: nowMs, failingSinceMs: null }
  }
  if (isOurs(outcome)) return health
  return { ...health, failingSinceMs: health.failingSinceMs ?? nowMs }
}

import type { CallPriority } from './carrier-answer.ts'

/**
 * A circuit breaker for calls to the carrier.
 *
 * `closed`: calls are made. A number of failures in a row, caused by the carrier or the network, opens it.
 * `open`: the schedule makes no calls. After a rest, one call is made as a probe; an app's question, for which somebody waits, may probe
 * sooner.
 * `probing`: the probe is under way and all other calls are refused. An answer closes the breaker, a failure makes the next rest longer.
 *
 * The breaker is a value with pure functions: the caller passes the time, and gets the length of the rest when a call is refused.
 */
export interface Breaker {
  readonly state: 'closed' | 'open' | 'probing'
  /** The number of failures since the last answer. */
  readonly failures: number
  /** The number of rests since the last answer. */
  readonly rests: number
  /** When the schedule may probe. Monotonic milliseconds, like all times here. */
  readonly restUntilMs: number
  readonly failedAtMs: number
}

/** Whether a call may be made: yes, as the one probe, or not for `restMs` milliseconds. */
export type Admission = { readonly kind: 'ask' | 'probe' } | { readonly kind: 'rest'; readonly restMs: number }

/** The breaker at the start, and after any answer. */
export const closedBreaker: Breaker = {
  state: 'closed',
  failures: 0,
  rests: 0,
  restUntilMs: Number.NEGATIVE_INFINITY,
  failedAtMs: Number.NEGATIVE_INFINITY,
}

/** More than one unlucky call with its retries makes, and few enough to spare a carrier that is down. */
export const FAILURES_TO_OPEN = 5
const REST_MS = 5000
const REST_MAX_MS = 5 * 60_000
/** An app's question may probe this long after the last failure. */
const APP_REST_MS = 5000
/** The random part of a rest, so that several relays do not return together. */
const JITTER = 0.2

/** Whether a call may be made now. For a probe, continue with `startProbe`. */
export function admit(breaker: Breaker, asker: CallPriority, nowMs: number): Admission {
  if (breaker.state === 'closed') return { kind: 'ask' }
  const untilMs = asker === 'app' ? Math.min(breaker.restUntilMs, breaker.failedAtMs + APP_REST_MS) : breaker.restUntilMs
  if (breaker.state === 'open' && nowMs >= untilMs) return { kind: 'probe' }
  return { kind: 'rest', restMs: Math.max(1000, untilMs - nowMs) }
}

/** How many calls the schedule may make at once: `most`, one as a probe, or none. */
export function callsAllowedNow({ state, restMs }: { readonly state: Breaker['state']; readonly restMs: number }, most: number): number {
  if (state === 'closed') return most
  return state === 'open' && restMs <= 0 ? 1 : 0
}

/** The breaker while its probe is under way. */
export function startProbe(breaker: Breaker): Breaker {
  return { ...breaker, state: 'probing' }
}

/** The breaker after any answer of the carrier. */
export function afterAnswer(): Breaker {
  return closedBreaker
}

/** The breaker after a call that says nothing about the carrier: it was never made, or it was cut off too soon after waiting here. */
export function afterNoVerdict(breaker: Breaker, wasProbe: boolean): Breaker {
  return wasProbe ? { ...breaker, state: 'open' } : breaker
}

/**
 * The breaker after the carrier failed or could not be reached.
 * @param random from 0 (inclusive) to 1 (exclusive), for the jitter.
 */
export function afterFailure(breaker: Breaker, wasProbe: boolean, nowMs: number, random: number): Breaker {
  const failures = breaker.failures + 1
  const failed = { ...breaker, failures, failedAtMs: nowMs }
  if (breaker.state === 'closed' && failures < FAILURES_TO_OPEN) return failed
  // Calls made before it opened add nothing.
  if (breaker.state !== 'closed' && !wasProbe) return failed
  const restMs = Math.min(REST_MAX_MS, REST_MS * 2 ** Math.min(breaker.rests, 16)) * (1 - JITTER * random)
  return { ...failed, state: 'open', rests: breaker.rests + 1, restUntilMs: nowMs + restMs }
}

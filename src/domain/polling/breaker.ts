import type { CallPriority } from './carrier-answer.ts'

/**
 * Whether a failing carrier is asked at all.
 *
 * `closed`   questions leave. So many failures in a row that are the carrier's or the network's open it.
 * `open`     the schedule rests, and nothing of it leaves. When the rest is over, one question goes as a probe; an app's question, for which
 *            somebody waits, may probe sooner.
 * `probing`  that one is under way: whoever comes meanwhile rests. An answer closes the breaker, a failure makes the next rest longer.
 *
 * A state and pure functions of it: the time is handed in, so a test owns it, the rest is told to whoever is turned away, and what an
 * operator reads is what decides.
 */
export interface Breaker {
  readonly state: 'closed' | 'open' | 'probing'
  /** Failures since the last answer. */
  readonly failures: number
  /** Rests since the last answer. */
  readonly rests: number
  /** When the schedule may probe. Monotonic milliseconds, like all times here. */
  readonly restUntilMs: number
  readonly failedAtMs: number
}

/** What becomes of a question: it leaves, it leaves as the one probe, or nobody is asked for so long. */
export type Admission = { readonly kind: 'ask' | 'probe' } | { readonly kind: 'rest'; readonly restMs: number }

export const closedBreaker: Breaker = {
  state: 'closed',
  failures: 0,
  rests: 0,
  restUntilMs: Number.NEGATIVE_INFINITY,
  failedAtMs: Number.NEGATIVE_INFINITY,
}

/** More than one unlucky question and its retries, fewer than would hammer a carrier that is down. */
export const FAILURES_TO_OPEN = 5
const REST_MS = 5000
const REST_MAX_MS = 5 * 60_000
/** An app may probe this long after the last failure. */
const APP_REST_MS = 5000
/** Part of a rest that is random, so that several relays do not come back together. */
const JITTER = 0.2

/** Whether a question may leave now. Pure: who is let through as a probe must be told to `startProbe`. */
export function admit(breaker: Breaker, asker: CallPriority, nowMs: number): Admission {
  if (breaker.state === 'closed') return { kind: 'ask' }
  const untilMs = asker === 'app' ? Math.min(breaker.restUntilMs, breaker.failedAtMs + APP_REST_MS) : breaker.restUntilMs
  if (breaker.state === 'open' && nowMs >= untilMs) return { kind: 'probe' }
  return { kind: 'rest', restMs: Math.max(1000, untilMs - nowMs) }
}

/** How many questions the schedule may ask at once: `most`, one to probe, or none. */
export function callsAllowedNow({ state, restMs }: { readonly state: Breaker['state']; readonly restMs: number }, most: number): number {
  if (state === 'closed') return most
  return state === 'open' && restMs <= 0 ? 1 : 0
}

/** A probe is under way. */
export function startProbe(breaker: Breaker): Breaker {
  return { ...breaker, state: 'probing' }
}

/** The carrier answered: whatever it said, it can be asked. */
export function afterAnswer(): Breaker {
  return closedBreaker
}

/** It ended without saying anything about the carrier: it never left, or waited here for so long that it was cut too soon. */
export function afterNoVerdict(breaker: Breaker, wasProbe: boolean): Breaker {
  return wasProbe ? { ...breaker, state: 'open' } : breaker
}

/**
 * The carrier could not be reached or failed.
 * @param random from 0 (inclusive) to 1 (exclusive): what jitter is made of.
 */
export function afterFailure(breaker: Breaker, wasProbe: boolean, nowMs: number, random: number): Breaker {
  const failures = breaker.failures + 1
  const failed = { ...breaker, failures, failedAtMs: nowMs }
  if (breaker.state === 'closed' && failures < FAILURES_TO_OPEN) return failed
  // Questions that left before it opened say nothing new.
  if (breaker.state !== 'closed' && !wasProbe) return failed
  const restMs = Math.min(REST_MAX_MS, REST_MS * 2 ** Math.min(breaker.rests, 16)) * (1 - JITTER * random)
  return { ...failed, state: 'open', rests: breaker.rests + 1, restUntilMs: nowMs + restMs }
}

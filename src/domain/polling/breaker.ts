import type { CallPriority } from './carrier-answer.ts'

/**
 * A circuit breaker for calls to the carrier.
 *
 * A failure that the question may have caused (a 500, a time-out) counts once for each question. If other questions are answered meanwhile,
 * the failing one was at fault: it counts no more until it is answered, so questions that always fail open no breaker. A failure that no
 * question can cause, such as a refused connection, always counts.
 *
 * `closed`: calls are made. A number of failures in a row, caused by the carrier or the network, opens it. `open`: the schedule makes no
 * calls. After a rest, one call is made as a probe; an app's question, for which somebody waits, may probe sooner. `probing`: the probe is
 * under way and all other calls are refused. An answer closes the breaker, a failure makes the next rest longer.
 *
 * The breaker is a value with pure functions: the caller passes the time, and gets the length of the rest when a call is refused.
 */
export interface Breaker {
  readonly state: 'closed' | 'open' | 'probing'
  /** The number of failures since the last answer; failures of the same question count once. */
  readonly failures: number
  /** The questions that failed since the last answer. */
  readonly suspects: ReadonlySet<string>
  /** The questions that failed while others were answered, and that have not been answered since. */
  readonly failing: ReadonlySet<string>
  /** The number of rests since the last answer. */
  readonly rests: number
  /** When the schedule may probe. Monotonic milliseconds, like all times here. */
  readonly restUntilMs: number
  readonly failedAtMs: number
}

/** Whether a call may be made: yes, as the one probe, or not for `restMs` milliseconds. */
export type Admission = { readonly kind: 'ask' | 'probe' } | { readonly kind: 'rest'; readonly restMs: number }

/** A call that failed. */
export interface CallFailure {
  /** The identifier that was asked about; null: no question can cause such a failure. */
  readonly question: string | null
  readonly wasProbe: boolean
  readonly nowMs: number
  /** From 0 (inclusive) to 1 (exclusive), for the jitter. */
  readonly random: number
}

const NONE: ReadonlySet<string> = new Set()

/** The breaker at the start, and after the answer to any question while none fails. */
export const closedBreaker: Breaker = {
  state: 'closed',
  failures: 0,
  suspects: NONE,
  failing: NONE,
  rests: 0,
  restUntilMs: Number.NEGATIVE_INFINITY,
  failedAtMs: Number.NEGATIVE_INFINITY,
}

/** More than one unlucky call makes with its retries, and few enough to spare a carrier that is down. */
export const FAILURES_TO_OPEN = 5
const REST_MS = 5000
const REST_MAX_MS = 5 * 60_000
/** An app's question may probe this long after the last failure. */
const APP_REST_MS = 5000
/** How many questions that always fail are remembered. */
const FAILING_MAX = 5000
/** The random part of a rest, so that several relays do not return together. */
const JITTER = 0.2

/** Whether the call for a question may be made now. For a probe, continue with `startProbe`. */
export function admit(breaker: Breaker, asker: CallPriority, question: string, nowMs: number): Admission {
  if (breaker.state === 'closed') return { kind: 'ask' }
  // An app that repeats a question that always fails must not make the rests of all others longer.
  const maySooner = asker === 'app' && !isKnownToFail(breaker, question)
  const untilMs = maySooner ? Math.min(breaker.restUntilMs, breaker.failedAtMs + APP_REST_MS) : breaker.restUntilMs
  if (breaker.state === 'open' && nowMs >= untilMs) return { kind: 'probe' }
  return { kind: 'rest', restMs: Math.max(1000, untilMs - nowMs) }
}

function isKnownToFail({ suspects, failing }: Breaker, question: string): boolean {
  return suspects.has(question) || failing.has(question)
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

/** The breaker after the carrier's answer to a question. The questions that failed since the last answer were themselves at fault. */
export function afterAnswer(breaker: Breaker, question: string): Breaker {
  const { suspects, failing } = breaker
  if (suspects.size === 0 && !failing.has(question)) return { ...closedBreaker, failing }
  const known = new Set([...failing, ...suspects])
  known.delete(question)
  return { ...closedBreaker, failing: known.size > FAILING_MAX ? new Set([...known].slice(-FAILING_MAX)) : known }
}

/** The breaker after a call that says nothing about the carrier: it was never made, or it was cut off too soon after waiting here. */
export function afterNoVerdict(breaker: Breaker, wasProbe: boolean): Breaker {
  return wasProbe ? { ...breaker, state: 'open' } : breaker
}

/** The breaker after the carrier failed or could not be reached. */
export function afterFailure(breaker: Breaker, { question, wasProbe, nowMs, random }: CallFailure): Breaker {
  const isKnown = question !== null && isKnownToFail(breaker, question)
  // This question was counted before. If it was the probe, it has shown nothing, and the next probe comes after a rest as long as the last.
  if (isKnown && !wasProbe) return breaker
  if (isKnown) return { ...breaker, state: 'open', restUntilMs: nowMs + restMs(breaker.rests - 1, random) }
  const failures = breaker.failures + 1
  const suspects = question === null ? breaker.suspects : new Set([...breaker.suspects, question])
  const failed = { ...breaker, failures, suspects, failedAtMs: nowMs }
  if (breaker.state === 'closed' && failures < FAILURES_TO_OPEN) return failed
  // Failures of calls that were made before it opened add nothing.
  if (breaker.state !== 'closed' && !wasProbe) return failed
  return { ...failed, state: 'open', rests: breaker.rests + 1, restUntilMs: nowMs + restMs(breaker.rests, random) }
}

function restMs(rests: number, random: number): number {
  return Math.min(REST_MAX_MS, REST_MS * 2 ** Math.max(0, Math.min(rests, 16))) * (1 - JITTER * random)
}

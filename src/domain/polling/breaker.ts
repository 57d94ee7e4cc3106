import type { CallPriority } from './carrier-answer.ts'

/**
 * A circuit breaker for calls to the carrier.
 *
 * `closed`: calls are made. Several failures in a row open the breaker. `open`: the schedule makes no calls. After a rest one call is made
 * as a probe. An app's question may probe sooner, because somebody waits for the answer. `probing`: the probe is under way, and all other
 * calls are refused. An answer closes the breaker, a failure makes the next rest longer.
 *
 * Some failures may be caused by the question: a 500, a time-out. They count once for each question. If the carrier answers other questions
 * meanwhile, the failing question was at fault, and no longer counts until it is answered. So questions that always fail cannot open the
 * breaker. Other failures, such as a refused connection, always count.
 *
 * The breaker is a value with pure functions: the caller passes the time, and learns the length of the rest when a call is refused.
 */
export interface Breaker {
  readonly state: 'closed' | 'open' | 'probing'
  /** The number of failures since the last answer; failures of the same question count once. */
  readonly failures: number
  /** The questions that have failed since the last answer. */
  readonly suspects: ReadonlySet<string>
  /** The questions that were at fault: they failed while others were answered, and were not answered since. */
  readonly failing: ReadonlySet<string>
  /** The number of rests since the last answer, which decides the length of the next one. */
  readonly rests: number
  /** When the schedule may probe. Monotonic milliseconds, like all times here. */
  readonly restUntilMs: number
  readonly failedAtMs: number
}

/** `ask`: the call may be made. `probe`: it may be made as the one probe. Otherwise it must wait for `restMs` milliseconds. */
export type Admission = { readonly kind: 'ask' | 'probe' } | { readonly kind: 'rest'; readonly restMs: number }

/** A call that failed. */
export interface CallFailure {
  /** The identifier that was asked about; null: the failure had nothing to do with the question. */
  readonly question: string | null
  readonly wasProbe: boolean
  readonly nowMs: number
  /** From 0 (inclusive) to 1 (exclusive), for the jitter. */
  readonly random: number
}

const NONE: ReadonlySet<string> = new Set()

/** The breaker at the start. */
export const closedBreaker: Breaker = {
  state: 'closed',
  failures: 0,
  suspects: NONE,
  failing: NONE,
  rests: 0,
  restUntilMs: Number.NEGATIVE_INFINITY,
  failedAtMs: Number.NEGATIVE_INFINITY,
}

/** More failures than one unlucky call makes with its retries, but few, so that a carrier that is down gets few more calls. */
export const FAILURES_TO_OPEN = 5
const REST_MS = 5000
const REST_MAX_MS = 5 * 60_000
/** An app's question may probe this long after the last failure. */
const APP_REST_MS = 5000
/** The maximum of questions at fault that are remembered. */
const FAILING_MAX = 5000
/** Rests vary by this share, so that several relays do not return together. */
const JITTER = 0.2

/** Whether the call for a question may be made now. For a probe, continue with `startProbe`. */
export function admit(breaker: Breaker, asker: CallPriority, question: string, nowMs: number): Admission {
  if (breaker.state === 'closed') return { kind: 'ask' }
  // An app may repeat a question that always fails. Its probes must not make everybody else's rests longer.
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

/** The breaker after a call that says nothing about the carrier: it was never made, or it waited here until too little time was left. */
export function afterNoVerdict(breaker: Breaker, wasProbe: boolean): Breaker {
  return wasProbe ? { ...breaker, state: 'open' } : breaker
}

/** The breaker after the carrier failed or could not be reached. */
export function afterFailure(breaker: Breaker, { question, wasProbe, nowMs, random }: CallFailure): Breaker {
  const isKnown = question !== null && isKnownToFail(breaker, question)
  // This question was counted before, so its failure shows nothing new. If it was the probe, the next probe comes after a rest of the same
  // length.
  if (isKnown && !wasProbe) return breaker
  if (isKnown) return { ...breaker, state: 'open', restUntilMs: nowMs + restMs(breaker.rests - 1, random) }
  const failures = breaker.failures + 1
  const suspects = question === null ? breaker.suspects : new Set([...breaker.suspects, question])
  const failed = { ...breaker, failures, suspects, failedAtMs: nowMs }
  if (breaker.state === 'closed' && failures < FAILURES_TO_OPEN) return failed
  // These calls were made before the breaker opened, so their failures add nothing.
  if (breaker.state !== 'closed' && !wasProbe) return failed
  return { ...failed, state: 'open', rests: breaker.rests + 1, restUntilMs: nowMs + restMs(breaker.rests, random) }
}

function restMs(rests: number, random: number): number {
  return Math.min(REST_MAX_MS, REST_MS * 2 ** Math.max(0, Math.min(rests, 16))) * (1 - JITTER * random)
}

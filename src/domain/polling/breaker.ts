import type { CallPriority } from './carrier-answer.ts'

/**
 * A circuit breaker for calls to the carrier.
 *
 * `closed`: calls are made. `FAILURES_TO_OPEN` failures in a row open the breaker. `open`: no calls are made until a rest is over. Then one call
 * is made as a probe. An app waits for its answer, so a question of an app may be the probe before a long rest is over. `probing`: the probe is
 * under way, and all other calls are refused. An answer to the probe closes the breaker; a failure begins a longer rest.
 *
 * Some questions always fail, with a 500 or a time-out, and must not open the breaker. So such a failure counts once for each question. If the
 * carrier then answers another question, the failed question is at fault. Until the carrier answers it, its failures do not count. Other
 * failures, such as a refused connection, always count.
 */
export interface Breaker {
  readonly state: 'closed' | 'open' | 'probing'
  /** Counted since the last answer. Failures of the same question count once. */
  readonly failures: number
  /** The identifiers of questions that have failed since the last answer. */
  readonly suspects: ReadonlySet<string>
  /** The identifiers of questions at fault. */
  readonly failing: ReadonlySet<string>
  /** The number of rests since the last answer. The next rest takes up to `REST_MS * 2 ** rests`, at most `REST_MAX_MS`. */
  readonly rests: number
  /** When the schedule may probe. All times of a breaker are milliseconds of a monotonic clock. */
  readonly restUntilMs: number
  readonly failedAtMs: number
}

/** Whether a call may be made. `ask`: yes. `probe`: yes, as the only probe. `rest`: not before `restMs` have passed. */
export type Admission = { readonly kind: 'ask' | 'probe' } | { readonly kind: 'rest'; readonly restMs: number }

export interface CallFailure {
  /** An identifier; null: the question cannot be the cause of the failure. */
  readonly question: string | null
  readonly wasProbe: boolean
  readonly nowMs: number
  /** From 0 (inclusive) to 1 (exclusive), for the `JITTER` of the rest. */
  readonly random: number
}

const NONE: ReadonlySet<string> = new Set()

export const closedBreaker: Breaker = {
  state: 'closed',
  failures: 0,
  suspects: NONE,
  failing: NONE,
  rests: 0,
  restUntilMs: Number.NEGATIVE_INFINITY,
  failedAtMs: Number.NEGATIVE_INFINITY,
}

/** A few more failures than one call can have with its retries. If this were higher, calls to a carrier that is down would go on for longer. */
export const FAILURES_TO_OPEN = 5
const REST_MS = 5000
const REST_MAX_MS = 5 * 60_000
/** A question of an app may be the probe this long after the last failure. */
const APP_REST_MS = 5000
const FAILING_MAX = 5000
/** Rests are up to this share shorter, at random, so that several relays do not probe at the same time. */
const JITTER = 0.2

/** Decides whether a call may be made now. After `probe` the caller calls `startProbe`, and then makes the call. */
export function admit(breaker: Breaker, asker: CallPriority, question: string, nowMs: number): Admission {
  if (breaker.state === 'closed') return { kind: 'ask' }
  // A question that has failed may not be an early probe: an app may repeat it, and each failed probe postpones the next one.
  const maySooner = asker === 'app' && !isKnownToFail(breaker, question)
  const untilMs = maySooner ? Math.min(breaker.restUntilMs, breaker.failedAtMs + APP_REST_MS) : breaker.restUntilMs
  if (breaker.state === 'open' && nowMs >= untilMs) return { kind: 'probe' }
  return { kind: 'rest', restMs: Math.max(1000, untilMs - nowMs) }
}

function isKnownToFail({ suspects, failing }: Breaker, question: string): boolean {
  return suspects.has(question) || failing.has(question)
}

/** Returns how many calls the schedule may make at the same time: `most` if the breaker is closed, one as a probe, or none. */
export function callsAllowedNow({ state, restMs }: { readonly state: Breaker['state']; readonly restMs: number }, most: number): number {
  if (state === 'closed') return most
  return state === 'open' && restMs <= 0 ? 1 : 0
}

export function startProbe(breaker: Breaker): Breaker {
  return { ...breaker, state: 'probing' }
}

/** The suspects are now at fault, except the answered question. */
export function afterAnswer(breaker: Breaker, question: string): Breaker {
  const { suspects, failing } = breaker
  if (suspects.size === 0 && !failing.has(question)) return { ...closedBreaker, failing }
  const known = new Set([...failing, ...suspects])
  known.delete(question)
  return { ...closedBreaker, failing: known.size > FAILING_MAX ? new Set([...known].slice(-FAILING_MAX)) : known }
}

/** Call it after a call that says nothing about the carrier: it was not made, or it waited in the relay until it timed out. */
export function afterNoVerdict(breaker: Breaker, wasProbe: boolean): Breaker {
  return wasProbe ? { ...breaker, state: 'open' } : breaker
}

export function afterFailure(breaker: Breaker, { question, wasProbe, nowMs, random }: CallFailure): Breaker {
  const isKnown = question !== null && isKnownToFail(breaker, question)
  // This question has failed before, so the failure proves nothing new. If it was the probe, the next rest is as long as the last one.
  if (isKnown && !wasProbe) return breaker
  if (isKnown) return { ...breaker, state: 'open', restUntilMs: nowMs + restMs(breaker.rests - 1, random) }
  const failures = breaker.failures + 1
  const suspects = question === null ? breaker.suspects : new Set([...breaker.suspects, question])
  const failed = { ...breaker, failures, suspects, failedAtMs: nowMs }
  if (breaker.state === 'closed' && failures < FAILURES_TO_OPEN) return failed
  // This call was made before the breaker opened, so its failure must not make the rest longer.
  if (breaker.state !== 'closed' && !wasProbe) return failed
  return { ...failed, state: 'open', rests: breaker.rests + 1, restUntilMs: nowMs + restMs(breaker.rests, random) }
}

function restMs(rests: number, random: number): number {
  return Math.min(REST_MAX_MS, REST_MS * 2 ** Math.max(0, Math.min(rests, 16))) * (1 - JITTER * random)
}

import type { CallPriority } from './carrier-answer.ts'

/**
 * A circuit breaker for calls to the carrier.
 *
 * `closed`: calls are made. `open`: no calls are made until a rest is over. Then one call is made as a probe. An app waits for its answer, so a
 * question of an app may be the probe before a long rest is over. `probing`: the probe is under way, and all other calls are refused. An answer
 * to the probe closes the breaker; a failure begins another rest.
 *
 * A 200 with a history, a 404 and a 410 are answers, but see `isAnswer`. A failure is a call that brought none: the carrier could not be reached or had an error of
 * its own. A refusal is every other reply, such as a 403, a redirect or a page of HTML. Calls that were not made, and a 429, are neither.
 *
 * The breaker opens when the carrier is in doubt (`isDoubtful`) and a last check gets no answer either. The check asks about a parcel that the
 * carrier has answered before, because some questions always fail and say nothing of the carrier. For the same reason a failure counts once for
 * each question. If the carrier then answers another question, the failed questions are at fault. Until the carrier answers them, they do not
 * count. Failures such as a refused connection always count.
 */
export interface Breaker {
  readonly state: 'closed' | 'open' | 'probing'
  /** Counted since the last answer. Failures of the same question count once, except in checks. */
  readonly failures: number
  /** How many calls had no answer since the last answer: failures and refusals. Questions at fault do not count. */
  readonly unanswered: number
  /** When the first of these calls ended; null: there was none. All times of a breaker are milliseconds of a monotonic clock. */
  readonly unansweredSinceMs: number | null
  /** When a question about a parcel was last refused since the last answer; null: none was. */
  readonly parcelRefusedAtMs: number | null
  /** The identifiers of questions that had no answer since the last answer. */
  readonly suspects: ReadonlySet<string>
  /** The identifiers of questions at fault. */
  readonly failing: ReadonlySet<string>
  /** The number of rests since the last answer that were longer than the one before. The next one takes up to `REST_MS * 2 ** rests`, at most `REST_MAX_MS`. */
  readonly rests: number
  /** How many probes had no answer since the breaker opened. */
  readonly probes: number
  /** When the schedule may probe. */
  readonly restUntilMs: number
  readonly failedAtMs: number
}

/** Whether a call may be made. `ask`: yes. `probe`: yes, as the only probe. `rest`: not before `restMs` have passed. */
export type Admission = { readonly kind: 'ask' | 'probe' } | { readonly kind: 'rest'; readonly restMs: number }

export interface CallFailure {
  /** An identifier; null: the question cannot be the cause of the failure. */
  readonly question: string | null
  readonly isRefusal: boolean
  /** Whether no parcel has the identifier. */
  readonly ofNobody?: boolean
  /** `check`: the call was made to find out whether the carrier answers at all. */
  readonly as: 'call' | 'check' | 'probe'
  readonly nowMs: number
  /** From 0 (inclusive) to 1 (exclusive), for the `JITTER` of the rest. */
  readonly random: number
}

const NONE: ReadonlySet<string> = new Set()

export const closedBreaker: Breaker = {
  state: 'closed',
  failures: 0,
  unanswered: 0,
  unansweredSinceMs: null,
  parcelRefusedAtMs: null,
  suspects: NONE,
  failing: NONE,
  rests: 0,
  probes: 0,
  restUntilMs: Number.NEGATIVE_INFINITY,
  failedAtMs: Number.NEGATIVE_INFINITY,
}

/** A few more failures than one call can have with its retries. If this were higher, calls to a carrier that is down would go on for longer. */
export const FAILURES_TO_OPEN = 5
/** So many failures are enough if the last was a check. With few parcels, it would take minutes until their polls have failed more often. */
const CHECKED_FAILURES_TO_OPEN = 3
/** After a failure, the relay waits this long for an answer to any question. Then it checks whether the carrier answers at all. */
export const CHECK_AFTER_MS = 5000
/** So many calls in a row without an answer, over so many parcels, put the carrier in doubt. */
const UNANSWERED_MAX = 20
const UNANSWERED_PARCELS = 5
/** So does a quarter of an hour without an answer, if enough questions were asked. */
const UNANSWERED_MAX_MS = 15 * 60_000
const UNANSWERED_MIN = 3
/** So many probes are made before rests become longer, because some of them may ask about parcels whose questions always fail. */
const PROBES_AT_FIRST = 10
const REST_MS = 5000
const REST_MAX_MS = 5 * 60_000
/** A question of an app may be the probe this long after the last failure. */
const APP_REST_MS = 5000
/** If no parcel was asked about for so long, there may be none left, and only other questions can show that the carrier answers. */
const PARCELS_GONE_MS = 24 * 60 * 60_000
const QUESTIONS_MAX = 5000
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

/** Whether to wake the poller: it may probe, or the pause has ended since the last look, and what waited is due. */
export function mayAskAgain(
  { state, restMs }: { readonly state: Breaker['state']; readonly restMs: number },
  before: Breaker['state'],
): boolean {
  return state === 'open' ? restMs <= 0 : state === 'closed' && before !== 'closed'
}

export function startProbe(breaker: Breaker): Breaker {
  return { ...breaker, state: 'probing' }
}

/**
 * Whether an answer shows that the carrier answers. While it refuses the questions about parcels, a 404 for a number that no parcel has does not:
 * it may refuse only what belongs to an account.
 */
export function isAnswer(
  { parcelRefusedAtMs }: Breaker,
  kind: 'found' | 'not_found',
  { ofNobody, nowMs }: { readonly ofNobody: boolean; readonly nowMs: number },
): boolean {
  return kind === 'found' || !ofNobody || parcelRefusedAtMs === null || nowMs - parcelRefusedAtMs >= PARCELS_GONE_MS
}

/** The suspects are now at fault, except the answered question. */
export function afterAnswer({ suspects, failing }: Breaker, question: string): Breaker {
  if (suspects.size === 0 && !failing.has(question)) return { ...closedBreaker, failing }
  const known = new Set([...failing, ...suspects])
  known.delete(question)
  return { ...closedBreaker, failing: bounded(known) }
}

/** Call it after a call that says nothing about the carrier: it was not made, or it waited in the relay until it timed out. */
export function afterNoVerdict(breaker: Breaker, wasProbe: boolean): Breaker {
  return wasProbe ? { ...breaker, state: 'open' } : breaker
}

/** If the carrier `isDoubtful` afterwards, the caller checks whether it answers at all, unless this call was the check. */
export function afterFailure(breaker: Breaker, failure: CallFailure): Breaker {
  const { question, as, nowMs } = failure
  // A question at fault proves nothing, except as a probe: the parcels that are left to ask about may all be at fault.
  if (as === 'call' && question !== null && breaker.failing.has(question)) return breaker
  const counted = count(breaker, failure)
  if (as === 'probe') return afterProbe(counted, failure)
  if (as === 'check' && breaker.state === 'closed' && (isDoubtful(counted, nowMs) || counted.failures >= CHECKED_FAILURES_TO_OPEN))
    return openBreaker(counted, failure)
  return counted
}

function count(breaker: Breaker, { question, isRefusal, ofNobody, as, nowMs }: CallFailure): Breaker {
  const isRepeated = question !== null && isKnownToFail(breaker, question)
  const isCounted = as === 'check' || (!isRefusal && !isRepeated)
  return {
    ...breaker,
    failures: breaker.failures + (isCounted ? 1 : 0),
    unanswered: breaker.unanswered + 1,
    unansweredSinceMs: breaker.unansweredSinceMs ?? nowMs,
    parcelRefusedAtMs: isRefusal && question !== null && ofNobody !== true ? nowMs : breaker.parcelRefusedAtMs,
    suspects: question === null || isRepeated ? breaker.suspects : bounded(new Set([...breaker.suspects, question])),
    failedAtMs: isCounted || as === 'probe' ? nowMs : breaker.failedAtMs,
  }
}

/** An early probe of an app does not postpone the probes of the schedule, because apps may ask about numbers that nobody knows. */
function afterProbe(breaker: Breaker, { question, nowMs, random }: CallFailure): Breaker {
  if (nowMs < breaker.restUntilMs) return { ...breaker, state: 'open' }
  const probes = breaker.probes + 1
  const growsFrom = question === null || probes >= PROBES_AT_FIRST ? breaker.rests : Math.max(0, breaker.rests - 1)
  return { ...breaker, state: 'open', probes, rests: growsFrom + 1, restUntilMs: nowMs + restMs(growsFrom, random) }
}

/** Whether the carrier has given so few answers lately that the relay must pause, unless a check gets an answer. */
export function isDoubtful({ state, failures, unanswered, unansweredSinceMs, suspects }: Breaker, nowMs: number): boolean {
  if (state !== 'closed' || unansweredSinceMs === null) return false
  if (failures >= FAILURES_TO_OPEN || (unanswered >= UNANSWERED_MAX && suspects.size >= UNANSWERED_PARCELS)) return true
  return unanswered >= UNANSWERED_MIN && nowMs - unansweredSinceMs >= UNANSWERED_MAX_MS
}

/** Whether to check if the carrier answers at all, although nobody asks it. On a quiet relay the next poll may be hours away. */
export function isCheckDue(breaker: Breaker, nowMs: number): boolean {
  const { state, failures, failedAtMs } = breaker
  return isDoubtful(breaker, nowMs) || (state === 'closed' && failures > 0 && nowMs - failedAtMs >= CHECK_AFTER_MS)
}

/**
 * Goes on with an outage that an earlier run or another replica has found. `sinceMs`: when it began. `isRefused`: the questions about parcels were
 * refused. The schedule and apps may probe at once.
 */
export function resumeOutage({
  nowMs,
  sinceMs,
  isRefused,
}: {
  readonly nowMs: number
  readonly sinceMs: number
  readonly isRefused: boolean
}): Breaker {
  return {
    ...closedBreaker,
    state: 'open',
    unansweredSinceMs: sinceMs,
    parcelRefusedAtMs: isRefused ? nowMs : null,
    rests: 1,
    restUntilMs: nowMs,
  }
}

/** Begins the first rest. */
export function openBreaker(breaker: Breaker, { nowMs, random }: Pick<CallFailure, 'nowMs' | 'random'>): Breaker {
  return { ...breaker, state: 'open', rests: 1, probes: 0, restUntilMs: nowMs + restMs(0, random) }
}

function bounded(questions: ReadonlySet<string>): ReadonlySet<string> {
  return questions.size > QUESTIONS_MAX ? new Set([...questions].slice(-QUESTIONS_MAX)) : questions
}

function restMs(rests: number, random: number): number {
  return Math.min(REST_MAX_MS, REST_MS * 2 ** Math.min(rests, 16)) * (1 - JITTER * random)
}

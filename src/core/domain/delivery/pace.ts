import { notAhead } from '../instant.ts'
import { clampRetryAfterMs, retryAfterMaxMs } from '../retry-after.ts'

/** How fast an endpoint is sent deliveries, learnt from the answers by which it limits us. Times are epoch milliseconds. */
export interface Pace {
  /** Attempts a second at the end of the wait. From then on the pace grows. */
  readonly perSecond: number
  /** The pace at which the endpoint last refused: about what it takes. */
  readonly limitPerSecond: number
  readonly halvedAtMs: number
  /** Nothing is sent before this time. */
  readonly waitUntilMs: number
}

/** An answer by which an endpoint limits us. */
export interface LimitSignal {
  /** When the attempt began. */
  readonly atMs: number
  readonly retryAfterMs: number | null
  /** How many attempts were made in the last second. Counts only if no pace is known yet. */
  readonly sentPerSecond: number
  /** The setting `rate` of the endpoint; null: it has none. */
  readonly ratePerSecond: number | null
}

/*
 * The pace follows what the endpoint takes, as TCP does: an answer that limits us halves it, then it grows by a fixed amount each second. Answers to
 * attempts that began before the pace was halved belong to the same signal, so eight refusals in flight halve it once.
 */

/** One attempt in five seconds. */
const FLOOR_PER_SECOND = 0.2
const HALVED_EVERY_MS = 1000
/** The wait after an answer that asks for none. */
const WAIT_MS = 1000
/** The pace doubles in this many seconds, but grows by at least `GROWTH_MIN` a second. */
const DOUBLED_IN_SECONDS = 30
const GROWTH_MIN = 0.1
/** An endpoint that has not limited us for this long after its last wait is sent everything at once again. */
const FORGOTTEN_AFTER_MS = 5 * 60_000

/** Returns the attempts a second that may be made now; null: no pace is known, or it was forgotten. */
export function paceAt(pace: Pace | null, nowMs: number): number | null {
  if (pace === null || nowMs >= pace.waitUntilMs + FORGOTTEN_AFTER_MS) return null
  const { perSecond, waitUntilMs } = pace
  const growth = Math.max(GROWTH_MIN, perSecond / DOUBLED_IN_SECONDS)
  return perSecond + (growth * Math.max(0, nowMs - waitUntilMs)) / 1000
}

/** Returns when the endpoint may be sent something again; null: it may be now. */
export function waitOf(pace: Pace | null, nowMs: number): number | null {
  return pace !== null && pace.waitUntilMs > nowMs ? pace.waitUntilMs : null
}

/** What is told of an endpoint that limits us. */
export interface ShownLimit {
  /** About how many deliveries it takes in a second. */
  readonly perSecond: number
  /** Until when nothing is sent, as it asked, epoch milliseconds; null: it is sent deliveries. */
  readonly waitUntilMs: number | null
}

/** Null: the endpoint does not limit us now. */
export function limitOf(pace: Pace | null, nowMs: number): ShownLimit | null {
  return pace === null || paceAt(pace, nowMs) === null ? null : { perSecond: pace.limitPerSecond, waitUntilMs: waitOf(pace, nowMs) }
}

export function describeLimit(perSecond: number): string {
  return `limits us to about ${perSecond >= 1 ? `${Math.round(perSecond)}/s` : `one in ${Math.round(1 / perSecond)} s`}`
}

/** Halves the pace, at most once a second and once for all attempts that were in flight together, and waits as the answer asks. */
export function slowDown(pace: Pace | null, { atMs, retryAfterMs, sentPerSecond, ratePerSecond }: LimitSignal, nowMs: number): Pace {
  const waitUntilMs = Math.max(pace?.waitUntilMs ?? 0, nowMs + clampRetryAfterMs(retryAfterMs ?? WAIT_MS))
  const known = paceAt(pace, nowMs)
  if (pace !== null && known !== null && !isNewSignal(pace, atMs, nowMs)) return { ...pace, waitUntilMs }
  const limitPerSecond = Math.max(FLOOR_PER_SECOND, Math.min(known ?? sentPerSecond, ratePerSecond ?? Number.POSITIVE_INFINITY))
  return { perSecond: Math.max(FLOOR_PER_SECOND, limitPerSecond / 2), limitPerSecond, halvedAtMs: nowMs, waitUntilMs }
}

/** Returns the pace without its wait. */
export function withoutWait(pace: Pace | null, nowMs: number): Pace | null {
  return pace === null || waitOf(pace, nowMs) === null ? pace : { ...pace, waitUntilMs: nowMs }
}

/** See `clampHealthToClock`. */
export function clampPaceToClock(pace: Pace | null, nowMs: number): Pace | null {
  if (pace === null) return null
  return { ...pace, halvedAtMs: notAhead(pace.halvedAtMs, nowMs), waitUntilMs: Math.min(pace.waitUntilMs, nowMs + retryAfterMaxMs) }
}

/** If the clock was set back behind the last halving, the signal counts as new. */
function isNewSignal({ halvedAtMs }: Pace, atMs: number, nowMs: number): boolean {
  return nowMs < halvedAtMs || (atMs >= halvedAtMs && nowMs - halvedAtMs >= HALVED_EVERY_MS)
}

import { clampRetryAfterMs } from '../domain/retry-after.ts'

const DAY_MS = 86_400_000

export interface CallBudgetOptions {
  readonly ratePerSecond: number
  readonly callsPerDay: number
  readonly concurrency: number
  /** Calls that earlier runs already made on the UTC day of the first call. */
  readonly initialCallsToday?: number
}

/** What became of the wish to call. Times are monotonic milliseconds. */
export type Take =
  | { readonly kind: 'taken' }
  | { readonly kind: 'wait'; readonly untilMs: number }
  | { readonly kind: 'paused'; readonly untilMs: number }
  /** As many calls as `concurrency` allows are in flight. */
  | { readonly kind: 'busy' }
  /** The day's calls are used up. */
  | { readonly kind: 'spent'; readonly retryAfterMs: number }

/** The one budget of every call to the carrier (DOMAIN 6.4), as pure bookkeeping: it is told the time and waits for nothing. */
export interface CallBudget {
  /** Takes a slot if one is free now; what is taken must be released. */
  takeSlot(nowMs: number, wallMs: number): Take
  release(): void
  /** No call leaves before `untilMs`; an earlier, longer pause stands. */
  pauseUntil(untilMs: number): void
  /** The soonest that rate and pause let a call leave when `ahead` others go first. */
  earliestMs(nowMs: number, ahead: number): number
  inFlight(): number
  callsToday(wallMs: number): number
}

/**
 * The rate is kept as the time at which the calls made so far would have been due at an even pace. A call may run ahead of that by a
 * burst of half a second's worth, so that no second, wherever it starts, sees more than 1.5 times the rate. The rate and pauses count
 * monotonic time: a corrected wall clock neither stalls nor bursts. Only the day is the wall clock's (UTC).
 */
export function createCallBudget(options: CallBudgetOptions): CallBudget {
  const { ratePerSecond, callsPerDay, concurrency } = options
  // Below this rate only one call fits into a second, and two that leave 1,000 ms apart may arrive within one.
  const intervalMs = Math.max(1000 / ratePerSecond, ratePerSecond * 1.5 < 2 ? 1020 : 0)
  const headStartMs = (Math.max(1, Math.floor(ratePerSecond / 2)) - 1) * intervalMs
  let dueMs = Number.NEGATIVE_INFINITY
  let pausedUntilMs = Number.NEGATIVE_INFINITY
  let inFlight = 0
  let day: number | null = null
  let callsToday = options.initialCallsToday ?? 0

  const turnDay = (wallMs: number): void => {
    const today = Math.floor(wallMs / DAY_MS)
    if (day !== null && day !== today) callsToday = 0
    day = today
  }
  const earliestMs = (nowMs: number, ahead: number): number =>
    Math.max(nowMs, pausedUntilMs, Math.max(nowMs, dueMs) - headStartMs + ahead * intervalMs)

  return {
    takeSlot(nowMs, wallMs) {
      turnDay(wallMs)
      if (callsToday >= callsPerDay) return { kind: 'spent', retryAfterMs: clampRetryAfterMs(DAY_MS - (wallMs % DAY_MS)) }
      if (pausedUntilMs > nowMs) return { kind: 'paused', untilMs: pausedUntilMs }
      if (inFlight >= concurrency) return { kind: 'busy' }
      const untilMs = earliestMs(nowMs, 0)
      if (untilMs > nowMs) return { kind: 'wait', untilMs }
      dueMs = Math.max(nowMs, dueMs) + intervalMs
      inFlight += 1
      callsToday += 1
      return { kind: 'taken' }
    },
    release() {
      inFlight -= 1
    },
    pauseUntil(untilMs) {
      pausedUntilMs = Math.max(pausedUntilMs, untilMs)
    },
    earliestMs,
    inFlight: () => inFlight,
    callsToday(wallMs) {
      turnDay(wallMs)
      return callsToday
    },
  }
}

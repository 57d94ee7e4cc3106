import type { DayCalls } from '../../domain/polling/carrier-memory.ts'
import { clampRetryAfterMs } from '../../domain/retry-after.ts'
import { createCallDays, dayOf, remainingDayMs } from './call-days.ts'

/** How many calls are written down in advance: at most `AHEAD_MAX`, and at most this share of the day's. A kill wastes up to as many. */
const AHEAD_MAX = 64
const AHEAD_PART = 1 / 1000

/** The limits of the budget. */
export interface CallBudgetOptions {
  readonly ratePerSecond: number
  readonly callsPerDay: number
  readonly concurrency: number
  /** Null: there was no earlier run, so no earlier calls are known. */
  readonly earlier?: EarlierCalls | null
}

/** What an earlier run saved. */
export interface EarlierCalls {
  readonly days: readonly DayCalls[]
  /** When it was saved, epoch milliseconds. */
  readonly atMs: number
  /** Until when the carrier asked for a pause, monotonic milliseconds. */
  readonly pausedUntilMs: number
  /** When this run began, monotonic milliseconds. The earlier one had ended by then, perhaps just after a call. */
  readonly endedMs: number
}

/** Whether a call may be made. Times are monotonic milliseconds. */
export type SlotResult =
  | { readonly kind: 'taken' }
  | { readonly kind: 'wait'; readonly untilMs: number }
  | { readonly kind: 'paused'; readonly untilMs: number }
  /** As many calls as `concurrency` allows are in flight. */
  | { readonly kind: 'busy' }
  /** It could be made now, but it is not written down yet: save what `toWriteDown` returns first. */
  | { readonly kind: 'unwritten' }
  /** The day's calls are used up. */
  | { readonly kind: 'spent'; readonly retryAfterMs: number }

/** The budget for all calls to the carrier (DOMAIN 6.4), as pure bookkeeping: the caller passes the time. */
export interface CallBudget {
  /** Takes a slot if one is free now. A taken slot must be released. */
  takeSlot(nowMs: number, wallMs: number): SlotResult
  release(): void
  /** No call is made before `untilMs`; a longer pause set earlier stays. */
  pauseUntil(untilMs: number): void
  pausedUntilMs(): number
  /** The earliest time at which rate and pause allow a call, when `ahead` others go first. */
  earliestMs(nowMs: number, ahead: number): number
  inFlight(): number
  callsToday(wallMs: number): number
  /** The calls to save: those made, and with `ahead` some that may be made today. */
  toWriteDown(wallMs: number, ahead: boolean): readonly DayCalls[]
  /** These calls are saved and may be made. */
  writtenDown(days: readonly DayCalls[]): void
}

/**
 * The rate is kept as the time at which the calls made so far would be due at an even pace. A call may run ahead of it by a burst of half a
 * second's worth, so that no second, wherever it starts, has more than 1.5 times the rate. Rate and pauses use monotonic time, so a
 * corrected wall clock causes neither a stall nor a burst; only the day is by the wall clock (UTC).
 *
 * A call is made only when it is written down among the calls of its day. Several are written down at once: a kill wastes those not made
 * yet, and forgets none that were.
 */
export function createCallBudget(options: CallBudgetOptions): CallBudget {
  const { ratePerSecond, callsPerDay, concurrency, earlier = null } = options
  const aheadMost = Math.min(AHEAD_MAX, Math.max(1, Math.floor(callsPerDay * AHEAD_PART)))
  // Below this rate only one call fits into a second, and two calls made 1,000 ms apart may arrive within one.
  const intervalMs = Math.max(1000 / ratePerSecond, ratePerSecond * 1.5 < 2 ? 1020 : 0)
  const headStartMs = (Math.max(1, Math.floor(ratePerSecond / 2)) - 1) * intervalMs
  const days = createCallDays(earlier)
  let written: readonly DayCalls[] = []
  // The earlier run may have used its burst in its last moment.
  let dueMs = earlier === null ? Number.NEGATIVE_INFINITY : earlier.endedMs + headStartMs + intervalMs
  let pausedUntilMs = earlier?.pausedUntilMs ?? Number.NEGATIVE_INFINITY
  let inFlight = 0

  const writtenOn = (wallMs: number): number => written.find(({ day }) => day === dayOf(wallMs))?.calls ?? 0
  const earliestMs = (nowMs: number, ahead: number): number =>
    Math.max(nowMs, pausedUntilMs, Math.max(nowMs, dueMs) - headStartMs + ahead * intervalMs)

  return {
    takeSlot(nowMs, wallMs) {
      if (days.made(wallMs) >= callsPerDay) return { kind: 'spent', retryAfterMs: clampRetryAfterMs(remainingDayMs(wallMs)) }
      if (pausedUntilMs > nowMs) return { kind: 'paused', untilMs: pausedUntilMs }
      if (inFlight >= concurrency) return { kind: 'busy' }
      const untilMs = earliestMs(nowMs, 0)
      if (untilMs > nowMs) return { kind: 'wait', untilMs }
      if (days.madeOn(wallMs) >= writtenOn(wallMs)) return { kind: 'unwritten' }
      dueMs = Math.max(nowMs, dueMs) + intervalMs
      inFlight += 1
      days.add(wallMs)
      return { kind: 'taken' }
    },
    release() {
      inFlight -= 1
    },
    pauseUntil(untilMs) {
      pausedUntilMs = Math.max(pausedUntilMs, untilMs)
    },
    pausedUntilMs: () => pausedUntilMs,
    earliestMs,
    inFlight: () => inFlight,
    callsToday: days.made,
    toWriteDown(wallMs, ahead) {
      const counts = new Map(days.list().map(({ day, calls }) => [day, calls]))
      if (ahead) {
        // Calls saved earlier may be made until the new record is saved, so it never saves fewer.
        for (const { day, calls } of written) counts.set(day, Math.max(calls, counts.get(day) ?? 0))
        const more = Math.max(0, Math.min(aheadMost, callsPerDay - days.made(wallMs)))
        counts.set(dayOf(wallMs), Math.max(days.madeOn(wallMs) + more, counts.get(dayOf(wallMs)) ?? 0))
      }
      return [...counts].map(([day, calls]) => ({ day, calls }))
    },
    writtenDown(saved) {
      written = saved
    },
  }
}

import type { DayCalls } from '../domain/polling/carrier-memory.ts'
import { clampRetryAfterMs } from '../domain/retry-after.ts'
import { createCallDays, dayOf, remainingDayMs } from './call-days.ts'

/** How many calls are written down ahead at most, and which part of the day's: so many a kill may waste. */
const AHEAD_MAX = 64
const AHEAD_PART = 1 / 1000

export interface CallBudgetOptions {
  readonly ratePerSecond: number
  readonly callsPerDay: number
  readonly concurrency: number
  /** Null: there was no earlier run, so that nothing is known to have left before. */
  readonly earlier?: EarlierCalls | null
}

/** What an earlier run left. */
export interface EarlierCalls {
  readonly days: readonly DayCalls[]
  /** When it wrote that down, epoch milliseconds. */
  readonly atMs: number
  /** Monotonic. */
  readonly pausedUntilMs: number
  /** When this run began, monotonic: the other had ended by then, perhaps just after a call. */
  readonly endedMs: number
}

/** What became of the wish to call. Times are monotonic milliseconds. */
export type SlotResult =
  | { readonly kind: 'taken' }
  | { readonly kind: 'wait'; readonly untilMs: number }
  | { readonly kind: 'paused'; readonly untilMs: number }
  /** As many calls as `concurrency` allows are in flight. */
  | { readonly kind: 'busy' }
  /** It could leave now, but no more calls are written down: `toWriteDown` says what has to be, before any leaves. */
  | { readonly kind: 'unwritten' }
  /** The day's calls are used up. */
  | { readonly kind: 'spent'; readonly retryAfterMs: number }

/** The one budget of every call to the carrier (DOMAIN 6.4), as pure bookkeeping: it is told the time and waits for nothing. */
export interface CallBudget {
  /** Takes a slot if one is free now; what is taken must be released. */
  takeSlot(nowMs: number, wallMs: number): SlotResult
  release(): void
  /** No call leaves before `untilMs`; an earlier, longer pause stands. */
  pauseUntil(untilMs: number): void
  pausedUntilMs(): number
  /** The soonest that rate and pause let a call leave when `ahead` others go first. */
  earliestMs(nowMs: number, ahead: number): number
  inFlight(): number
  callsToday(wallMs: number): number
  /** The calls that were made; with `ahead`, several that may be made today besides. */
  toWriteDown(wallMs: number, ahead: boolean): readonly DayCalls[]
  /** These calls outlive a kill: they may leave. */
  writtenDown(days: readonly DayCalls[]): void
}

/**
 * The rate is kept as the time at which the calls made so far would have been due at an even pace. A call may run ahead of that by a
 * burst of half a second's worth, so that no second, wherever it starts, sees more than 1.5 times the rate. The rate and pauses count
 * monotonic time: a corrected wall clock neither stalls nor bursts. Only the day is the wall clock's (UTC).
 *
 * A call leaves only when it is written down among the calls of its day. Several are written down at once: a kill wastes those that had not
 * left yet, and forgets none that had.
 */
export function createCallBudget(options: CallBudgetOptions): CallBudget {
  const { ratePerSecond, callsPerDay, concurrency, earlier = null } = options
  const aheadMost = Math.min(AHEAD_MAX, Math.max(1, Math.floor(callsPerDay * AHEAD_PART)))
  // Below this rate only one call fits into a second, and two that leave 1,000 ms apart may arrive within one.
  const intervalMs = Math.max(1000 / ratePerSecond, ratePerSecond * 1.5 < 2 ? 1020 : 0)
  const headStartMs = (Math.max(1, Math.floor(ratePerSecond / 2)) - 1) * intervalMs
  const days = createCallDays(earlier)
  let written: readonly DayCalls[] = []
  // The earlier run may have used up its burst in its last moment.
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
        // What was promised may leave until the new promise stands: it never promises less.
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

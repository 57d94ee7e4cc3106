import { clampRetryAfterMs } from '../retry-after.ts'

/** The waits between the attempts of a delivery (CONTRACT `delivery`). */
export interface BackoffPolicy {
  /** The wait after the first attempt, the second, and so on, in milliseconds; never empty. */
  readonly scheduleMs: readonly number[]
  /** Spreads retries: the random share of a wait, 0 to 1. With 0.2 a wait of 10 s becomes 9 s to 11 s. */
  readonly jitter: number
}

/**
 * The wait after an attempt, in whole milliseconds; `null`: the schedule is used up.
 *
 * @param attempts made so far, at least 1. A schedule of n waits allows n + 1 attempts.
 *
 * @param random from 0 (inclusive) to 1 (exclusive).
 */
export function nextDelayMs(attempts: number, policy: BackoffPolicy, random: number): number | null {
  const waitMs = policy.scheduleMs[attempts - 1]
  return waitMs === undefined ? null : jittered(waitMs, policy.jitter, random)
}

/**
 * The wait if the schedule is used up but the delivery may not be given up: the last wait of the schedule, again and again (DOMAIN 7.4).
 */
export function lastDelayMs(policy: BackoffPolicy, random: number): number {
  return jittered(policy.scheduleMs.at(-1) ?? 0, policy.jitter, random)
}

/**
 * A wait that also obeys the receiver's `Retry-After`, within 1 s .. 1 h. It is never shorter than the schedule's wait. Otherwise a
 * receiver that keeps asking for one second would use up a schedule of days at once.
 *
 * @param retryAfterMs `null`: the receiver sent none.
 */
export function obeyRetryAfterMs(delayMs: number, retryAfterMs: number | null): number {
  return retryAfterMs === null ? delayMs : Math.max(delayMs, clampRetryAfterMs(retryAfterMs))
}

function jittered(waitMs: number, jitter: number, random: number): number {
  return Math.round(waitMs * (1 + jitter * (random - 0.5)))
}

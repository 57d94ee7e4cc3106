import { clampRetryAfterMs } from '../retry-after.ts'

/** The waits between the attempts of a delivery (CONTRACT `delivery`). */
export interface BackoffPolicy {
  /** The waits after the first attempt, the second, and so on, in milliseconds; never empty. */
  readonly scheduleMs: readonly number[]
  /** The random share of a wait, from 0 to 1. It spreads retries. With 0.2, a wait of 10 s becomes 9 s to 11 s. */
  readonly jitter: number
}

/** Returns the wait after attempt number `attempts`; null: the schedule has no more waits. `random`: from 0 to 1 (exclusive). */
export function nextDelayMs(attempts: number, policy: BackoffPolicy, random: number): number | null {
  const waitMs = policy.scheduleMs[attempts - 1]
  return waitMs === undefined ? null : jittered(waitMs, policy.jitter, random)
}

/** Returns the wait for a delivery that may not be given up although its schedule is used up: the schedule's last wait (DOMAIN 7.4). */
export function lastDelayMs(policy: BackoffPolicy, random: number): number {
  return jittered(policy.scheduleMs.at(-1) ?? 0, policy.jitter, random)
}

/**
 * Returns the longer of the schedule's wait and the receiver's `Retry-After`, which counts as at least 1 s and at most 1 h. If the shorter
 * one counted, a receiver that always asks for one second would use up a schedule of days at once.
 */
export function obeyRetryAfterMs(delayMs: number, retryAfterMs: number | null): number {
  return retryAfterMs === null ? delayMs : Math.max(delayMs, clampRetryAfterMs(retryAfterMs))
}

function jittered(waitMs: number, jitter: number, random: number): number {
  return Math.round(waitMs * (1 + jitter * (random - 0.5)))
}

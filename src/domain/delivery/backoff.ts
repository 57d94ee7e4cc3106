import { clampRetryAfterMs } from '../retry-after.ts'

/** How attempts of a delivery are spaced (CONTRACT `delivery`). */
export interface BackoffPolicy {
  /** The wait after the first attempt, the second, and so on, in milliseconds; never empty. */
  readonly scheduleMs: readonly number[]
  /** How much of a wait is random, 0 to 1: with 0.2 a wait of 10 s is one of 9 s to 11 s, so that retries spread. */
  readonly jitter: number
}

/**
 * How long to wait after an attempt, in whole milliseconds; `null`: the schedule is used up.
 * @param attempts made so far, at least 1; a schedule of n waits allows n + 1.
 * @param random from 0 (inclusive) to 1 (exclusive).
 */
export function nextDelayMs(attempts: number, policy: BackoffPolicy, random: number): number | null {
  const waitMs = policy.scheduleMs[attempts - 1]
  return waitMs === undefined ? null : jittered(waitMs, policy.jitter, random)
}

/** How long to wait once the schedule is used up and giving up is not allowed: its last wait, over and over (DOMAIN 7.4). */
export function lastDelayMs(policy: BackoffPolicy, random: number): number {
  return jittered(policy.scheduleMs.at(-1) ?? 0, policy.jitter, random)
}

/**
 * The wait that also obeys a receiver's `Retry-After`, clamped to 1 s .. 1 h: never sooner than it asked, and never sooner than the
 * schedule either, or a receiver that keeps asking for a second would use up a schedule of days within one.
 * @param retryAfterMs `null`: it did not ask.
 */
export function obeyRetryAfterMs(delayMs: number, retryAfterMs: number | null): number {
  return retryAfterMs === null ? delayMs : Math.max(delayMs, clampRetryAfterMs(retryAfterMs))
}

function jittered(waitMs: number, jitter: number, random: number): number {
  return Math.round(waitMs * (1 + jitter * (random - 0.5)))
}

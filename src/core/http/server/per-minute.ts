import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** Adds one to the count of a key. Returns null while the count is within the limit, else the milliseconds until it starts again at 0. */
export type PerMinute = (key: string) => Promise<number | null>

/** Limits failures by key. A try is counted before its result is known, so that many tries at the same time cannot exceed the limit. */
export interface Tries {
  readonly begin: PerMinute
  /** Takes back the count of a try that succeeded. */
  forgive(key: string): Promise<void>
}

/** Creates a limit of failures for each key and minute. Call the returned function only after a failure, so that no success is counted. */
export function createPerMinute(limit: number): PerMinute {
  return createTries(limit).begin
}

export function createTries(limit: number): Tries {
  const limiter = new RateLimiterMemory({ points: limit, duration: 60 })
  return {
    async begin(key) {
      try {
        await limiter.consume(key)
        return null
      } catch (refusal) {
        if (refusal instanceof RateLimiterRes) return Math.max(1000, refusal.msBeforeNext)
        throw refusal
      }
    },
    async forgive(key) {
      await limiter.reward(key)
    },
  }
}

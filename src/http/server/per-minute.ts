import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** Counts once for a key. Null: it is within the limit. Otherwise returns the milliseconds until the count starts again. */
export type PerMinute = (key: string) => Promise<number | null>

/** Limits failures. Each try counts before its result is known, so that tries at the same time cannot exceed the limit. */
export interface Tries {
  readonly begin: PerMinute
  /** Takes back the count of a try that succeeded. */
  forgive(key: string): Promise<void>
}

/** A limit for each key and minute. Call it for failures only, so that a success is never counted or refused. */
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

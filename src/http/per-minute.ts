import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** Counts something of somebody; null: within the limit, else how many milliseconds until it is counted anew. */
export type PerMinute = (key: string) => Promise<number | null>

/** A limit per key and minute. Only what is counted is limited: whoever succeeds is never counted, so never refused. */
export function createPerMinute(limit: number): PerMinute {
  const limiter = new RateLimiterMemory({ points: limit, duration: 60 })
  return async (key) => {
    try {
      await limiter.consume(key)
      return null
    } catch (refusal) {
      if (refusal instanceof RateLimiterRes) return Math.max(1000, refusal.msBeforeNext)
      throw refusal
    }
  }
}

import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** Counts something of somebody; null: within the limit, else how many milliseconds until it is counted anew. */
export type PerMinute = (key: string) => Promise<number | null>

/** A limit of what may fail: it is counted before it is known how it ends, so that nothing gets past the limit by coming at the same time. */
export interface Tries {
  readonly begin: PerMinute
  /** This one did not fail. */
  forgive(key: string): Promise<void>
}

/** A limit per key and minute. Only what is counted is limited: whoever succeeds is never counted, so never refused. */
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

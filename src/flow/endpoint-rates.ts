import type { Endpoint } from '../domain/endpoint.ts'

/** Keeps endpoints within their `rate`: a bucket each that holds a second's worth, and fills as time passes. */
export interface EndpointRates {
  /** How many attempts may start now, by endpoint id; those without a rate are not in it. */
  allowance(endpoints: Iterable<Endpoint>, monotonicMs: number): Readonly<Record<string, number>>
  started(endpointId: string): void
  /** How long until an endpoint that is used up may go on, in milliseconds; null: none is used up. */
  waitMs(): number | null
}

interface Bucket {
  readonly ratePerSecond: number
  tokens: number
  filledAtMs: number
}

export function createEndpointRates(): EndpointRates {
  const buckets = new Map<string, Bucket>()

  function fill({ id, ratePerSecond }: Endpoint, nowMs: number): Bucket | null {
    if (ratePerSecond === null) return null
    const known = buckets.get(id)
    const capacity = Math.max(1, ratePerSecond)
    const tokens = known === undefined ? capacity : Math.min(capacity, known.tokens + ((nowMs - known.filledAtMs) / 1000) * ratePerSecond)
    const bucket = { ratePerSecond, tokens, filledAtMs: nowMs }
    buckets.set(id, bucket)
    return bucket
  }

  return {
    allowance(endpoints, nowMs) {
      const filled = [...endpoints].map((endpoint) => [endpoint.id, fill(endpoint, nowMs)] as const)
      return Object.fromEntries(filled.flatMap(([id, bucket]) => (bucket === null ? [] : [[id, Math.floor(bucket.tokens)]])))
    },
    started(endpointId) {
      const bucket = buckets.get(endpointId)
      if (bucket !== undefined) bucket.tokens -= 1
    },
    waitMs() {
      const waits = [...buckets.values()]
        .filter(({ tokens }) => tokens < 1)
        .map(({ tokens, ratePerSecond }) => ((1 - tokens) / ratePerSecond) * 1000)
      return waits.length === 0 ? null : Math.ceil(Math.min(...waits))
    },
  }
}

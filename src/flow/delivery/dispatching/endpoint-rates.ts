import type { Endpoint } from '../../../domain/delivery/endpoint.ts'

/** Keeps each endpoint within its rate. Each attempt takes a token from a bucket, which fills at the rate and holds one second's tokens. */
export type EndpointRates = ReturnType<typeof createEndpointRates>

interface Bucket {
  readonly ratePerSecond: number
  tokens: number
  filledAtMs: number
}

type RatedEndpoint = Endpoint & { readonly ratePerSecond: number }

export function createEndpointRates() {
  const buckets = new Map<string, Bucket>()

  function filled({ id, ratePerSecond }: RatedEndpoint, nowMs: number): Bucket {
    const known = buckets.get(id)
    const capacity = Math.max(1, ratePerSecond)
    const tokens = known === undefined ? capacity : Math.min(capacity, known.tokens + ((nowMs - known.filledAtMs) / 1000) * ratePerSecond)
    return { ratePerSecond, tokens, filledAtMs: nowMs }
  }

  return {
    /** How many attempts may start now, by endpoint id. Endpoints without a rate are left out. */
    allowance(endpoints: Iterable<Endpoint>, nowMs: number): Readonly<Record<string, number>> {
      const rated = [...endpoints].filter(hasRate)
      const current = rated.map((endpoint) => [endpoint.id, filled(endpoint, nowMs)] as const)
      // Drop the bucket of an endpoint whose rate was removed. Attempts without a rate would empty it far below zero, and if a rate is set
      // again, nothing could be sent until the bucket has filled.
      buckets.clear()
      for (const [id, bucket] of current) buckets.set(id, bucket)
      return Object.fromEntries(current.map(([id, { tokens }]) => [id, Math.floor(tokens)]))
    },
    started(endpointId: string): void {
      const bucket = buckets.get(endpointId)
      if (bucket !== undefined) bucket.tokens -= 1
    },
    /** The milliseconds until the first exhausted bucket has a token again; null: no bucket is exhausted. */
    waitMs(): number | null {
      const waits = [...buckets.values()]
        .filter(({ tokens }) => tokens < 1)
        .map(({ tokens, ratePerSecond }) => ((1 - tokens) / ratePerSecond) * 1000)
      return waits.length === 0 ? null : Math.ceil(Math.min(...waits))
    },
  }
}

function hasRate(endpoint: Endpoint): endpoint is RatedEndpoint {
  return endpoint.ratePerSecond !== null
}

import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { paceAt } from '../../../domain/delivery/pace.ts'
import type { Clock } from '../../ports.ts'

/** Keeps each endpoint within its rate and its pace. Each attempt takes a token from a bucket, which fills at the rate and holds one second's tokens. */
export type EndpointRates = ReturnType<typeof createEndpointRates>

interface Bucket {
  readonly ratePerSecond: number
  tokens: number
  filledAtMs: number
}

export function createEndpointRates(clock: Clock) {
  const buckets = new Map<string, Bucket>()

  function filled(id: string, ratePerSecond: number): Bucket {
    const nowMs = clock.monotonic()
    const known = buckets.get(id)
    const capacity = Math.max(1, ratePerSecond)
    const tokens = known === undefined ? capacity : Math.min(capacity, known.tokens + ((nowMs - known.filledAtMs) / 1000) * ratePerSecond)
    return { ratePerSecond, tokens, filledAtMs: nowMs }
  }

  return {
    /** How many attempts may start now, by endpoint id. Endpoints without a rate or a pace are left out. */
    allowance(states: readonly EndpointState[]): Readonly<Record<string, number>> {
      const nowMs = clock.now()
      const current = states.flatMap((state) => {
        const ratePerSecond = rateOf(state, nowMs)
        return ratePerSecond === null ? [] : [[state.endpoint.id, filled(state.endpoint.id, ratePerSecond)] as const]
      })
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

/** The setting caps the pace. Null: the endpoint has neither. */
function rateOf({ endpoint: { ratePerSecond }, health }: EndpointState, nowMs: number): number | null {
  const pace = paceAt(health.pace, nowMs)
  return ratePerSecond === null || pace === null ? (ratePerSecond ?? pace) : Math.min(ratePerSecond, pace)
}

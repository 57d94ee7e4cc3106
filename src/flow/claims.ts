/** Which deliveries are claimed, by endpoint and delivery id. */
export interface Claims {
  /** Those of an endpoint that hold at a time; what has lapsed is forgotten. */
  of(endpointId: string, nowMs: number): HeldClaims
  add(endpointId: string, deliveryId: number, untilMs: number): void
  end(endpointId: string, deliveryId: number): void
}

export interface HeldClaims {
  readonly deliveryIds: readonly number[]
  /** When the first of them does; null: there are none. */
  readonly lapsesAtMs: number | null
}

interface Claim {
  readonly deliveryId: number
  readonly untilMs: number
}

/**
 * Claims are kept in memory by whoever writes: there is one, and a relay that dies takes its claims with it, so what it had under way is
 * owed at once when it starts again. In the store each would be one more change to write, and to wait for, before an event may leave. A
 * claim lapses all the same, so that one that is lost holds back its parcel for no longer than a lease.
 */
export function createClaims(): Claims {
  /** Each endpoint's in the order they were made; as few as an endpoint is sent at once, so a list is quicker than a map. */
  const byEndpoint = new Map<string, Claim[]>()
  const heldBy = (endpointId: string) => {
    const known = byEndpoint.get(endpointId)
    if (known !== undefined) return known
    const made: Claim[] = []
    byEndpoint.set(endpointId, made)
    return made
  }
  const end = (endpointId: string, deliveryId: number) => {
    const held = heldBy(endpointId)
    const at = held.findIndex((claim) => claim.deliveryId === deliveryId)
    if (at !== -1) held.splice(at, 1)
  }
  return {
    of(endpointId, nowMs) {
      const holding = heldBy(endpointId).filter(({ untilMs }) => untilMs > nowMs)
      byEndpoint.set(endpointId, holding)
      return { deliveryIds: holding.map(({ deliveryId }) => deliveryId), lapsesAtMs: holding[0]?.untilMs ?? null }
    },
    add(endpointId, deliveryId, untilMs) {
      end(endpointId, deliveryId)
      heldBy(endpointId).push({ deliveryId, untilMs })
    },
    end,
  }
}

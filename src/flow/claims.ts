/** Which deliveries are claimed, by endpoint and delivery id. */
export interface Claims {
  /** Those of an endpoint that hold at a time, with when they lapse, the first made first; what has lapsed is forgotten. */
  of(endpointId: string, nowMs: number): ReadonlyMap<number, number>
  add(endpointId: string, deliveryId: number, untilMs: number): void
  end(endpointId: string, deliveryId: number): void
}

/**
 * Claims are kept in memory by whoever writes: there is one, and a relay that dies takes its claims with it, so what it had under way is
 * owed at once when it starts again. In the store each would be one more change to write, and to wait for, before an event may leave. A
 * claim lapses all the same, so that one that is lost holds back its parcel for no longer than a lease.
 */
export function createClaims(): Claims {
  const byEndpoint = new Map<string, Map<number, number>>()
  const heldBy = (endpointId: string) => {
    const held = byEndpoint.get(endpointId) ?? new Map<number, number>()
    byEndpoint.set(endpointId, held)
    return held
  }
  return {
    of(endpointId, nowMs) {
      const held = heldBy(endpointId)
      for (const [id, untilMs] of held) if (untilMs <= nowMs) held.delete(id)
      return held
    },
    add: (endpointId, deliveryId, untilMs) => void heldBy(endpointId).set(deliveryId, untilMs),
    end: (endpointId, deliveryId) => void heldBy(endpointId).delete(deliveryId),
  }
}

import type { ClaimedDelivery, SettledAttempt } from '../../../src/core/domain/delivery/dispatch-round.ts'
import { defaultSettings, type EndpointSettings } from '../../../src/core/domain/delivery/endpoint-state.ts'
import type { WriteSide } from '../../../src/core/flow/write-side.ts'

export const endpointSettings: EndpointSettings = { ...defaultSettings, name: 'shop', url: 'http://shop.internal/' }

/** Deliveries received, by endpoint id. */
const arrived = new WeakMap<WriteSide, Map<string, ClaimedDelivery[]>>()

/** Delivers everything due to every endpoint at once, without a network. */
async function deliverAll(writes: WriteSide, nowMs: number): Promise<Map<string, ClaimedDelivery[]>> {
  const byId = arrived.get(writes) ?? new Map<string, ClaimedDelivery[]>()
  arrived.set(writes, byId)
  let settled: SettledAttempt[] = []
  for (;;) {
    const { claimed } = await writes.dispatchRound({ settled, inFlight: {}, allowance: {}, claimsMax: 100, nowMs })
    if (claimed.length === 0) return byId
    for (const delivery of claimed) byId.set(delivery.endpointId, [...(byId.get(delivery.endpointId) ?? []), delivery])
    settled = claimed.map(({ body: _body, previousSequence: _previous, ...delivery }) => ({
      ...delivery,
      result: { kind: 'accepted', status: 200, durationMs: 1, answerStart: new Uint8Array() },
      atMs: nowMs,
      random: 0.5,
    }))
  }
}

/** Adds an endpoint. `take` returns what the endpoint has received since the last call, in order. */
export async function addEndpoint(writes: WriteSide, nowMs: number, change: Partial<EndpointSettings & { readonly from: number }> = {}) {
  const id = await writes.reserveEndpoint(nowMs)
  const { from = null, ...changed } = change
  await writes.addEndpoint({ id, settings: { ...endpointSettings, ...changed }, key: 'sealed', from, nowMs })
  return endpointOf(writes, id, nowMs)
}

/** Wraps an existing endpoint as `addEndpoint` does. */
export function endpointOf(writes: WriteSide, id: string, nowMs: number) {
  return {
    id,
    async take(): Promise<readonly ClaimedDelivery[]> {
      const byId = await deliverAll(writes, nowMs)
      const mine = byId.get(id) ?? []
      byId.delete(id)
      return mine
    },
  }
}

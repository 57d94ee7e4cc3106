import { type EndpointSettings, noFilters } from '../../src/domain/endpoint.ts'
import type { ClaimedDelivery, SettledAttempt, WriteSide } from '../../src/flow/ports.ts'

const settings: EndpointSettings = {
  name: 'shop',
  url: 'http://shop.internal/',
  enabled: true,
  signature: 'carrier',
  filters: noFilters,
  backfill: false,
  ratePerSecond: null,
  concurrency: null,
  scheduleMs: null,
}

/** An endpoint that takes everything the moment it is owed it; no network is in it. */
export async function addEndpoint(writes: WriteSide, nowMs: number, change: Partial<EndpointSettings> = {}) {
  const id = await writes.reserveEndpoint(nowMs)
  await writes.addEndpoint({ id, settings: { ...settings, ...change }, key: 'sealed' })
  const taken: ClaimedDelivery[] = []

  /** What it is owed now, in the order it would arrive. */
  async function take(): Promise<readonly ClaimedDelivery[]> {
    const before = taken.length
    let settled: SettledAttempt[] = []
    for (;;) {
      const { claimed } = await writes.deliveryTurn({ settled, inFlight: {}, allowance: {}, claimsMax: 100, nowMs })
      const mine = claimed.filter(({ endpointId }) => endpointId === id)
      if (mine.length === 0) return taken.slice(before)
      taken.push(...mine)
      settled = mine.map(({ body: _body, previousSequence: _previous, ...delivery }) => ({
        ...delivery,
        result: { kind: 'accepted', status: 200, durationMs: 1, answerStart: new Uint8Array() },
        atMs: nowMs,
        random: 0.5,
      }))
    }
  }
  return { id, taken, take }
}

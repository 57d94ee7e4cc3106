import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { openDeliveryWorld } from '../../../support/delivery/delivery-world.ts'
import { MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'

const ofParcel = (parcel: number) => ({ trackingIds: [String(100_000 + parcel)], eventTime: '2026-03-01T10:00:00Z' })

describe.each(engines)('a delivery retried by hand on $name', (engine) => {
  test('7.4: a delivery that is retried by hand is claimed before all other waiting deliveries', async () => {
    const { writes, push, id } = await openDeliveryWorld(engine, NOON, { statusOf: () => 200, settings: { concurrency: 1 } })
    const claim = async (nowMs: number) =>
      (await writes().dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 1, nowMs })).claimed
    const settle = async ([claimed]: readonly ClaimedDelivery[], retryAfterMs: number | null) => {
      if (claimed === undefined) throw new Error('nothing was claimed')
      const { body: _body, previousSequence: _previous, ...delivery } = claimed
      const kept = { durationMs: 1, answerStart: new Uint8Array() }
      const refused = { kind: 'rejected', status: 500, retryAfterMs, ...kept } as const
      const result = retryAfterMs === null ? ({ kind: 'accepted', status: 200, ...kept } as const) : refused
      const settled = [{ ...delivery, result, atMs: NOON, random: 0.5 }]
      await writes().dispatchRound({ settled, inFlight: { [id]: [] }, allowance: {}, claimsMax: 0, nowMs: NOON })
      return claimed.deliveryId
    }
    for (let parcel = 1; parcel <= 4; parcel++) await push(ofParcel(parcel))
    const soon = await settle(await claim(NOON), MINUTE_MS)
    const late = await settle(await claim(NOON), 50 * MINUTE_MS)
    await settle(await claim(NOON), null)

    const laterMs = NOON + 10 * MINUTE_MS
    const nextOf = async () => (await claim(laterMs))[0]?.deliveryId
    expect([soon, late]).not.toContain(await nextOf())
    expect(await writes().retryDelivery({ deliveryId: late, nowMs: laterMs })).toBe('done')
    expect(await nextOf()).toBe(late)
  })
})

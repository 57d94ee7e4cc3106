import { describe, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { openDeliveryWorld } from '../../../support/delivery/delivery-world.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { runsOn } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'
import { changeStoredRows, storedNumber } from '../../../support/store/stored-rows.ts'

const ofParcel = (parcel: number, second = 0) => ({
  trackingIds: [String(100_000 + parcel)],
  eventTime: new Date(Date.parse('2026-03-01T10:00:00Z') + second * 1000).toISOString(),
})

/** Opens an endpoint that answers 500 until the test calls `mend`. `statusOf` overrides single answers. */
async function openDown(engine: Engine, rest: { readonly statusOf?: (delivery: ClaimedDelivery, upAtMs: number) => number | null } = {}) {
  let upAtMs = Number.POSITIVE_INFINITY
  const world = await openDeliveryWorld(engine, NOON, {
    statusOf: (delivery, atMs) => rest.statusOf?.(delivery, upAtMs) ?? (atMs >= upAtMs ? 200 : 500),
  })
  return {
    ...world,
    mend: () => {
      upAtMs = world.now()
    },
    pushParcels: async (count: number, from = 0) => {
      for (let parcel = from; parcel < from + count; parcel++) await world.push(ofParcel(parcel))
    },
    countOf: async (state: 'delivered' | 'dead') =>
      (await world.reads.listDeliveries({ endpointId: world.id, parcelId: null, state, before: null, limit: 1000 })).deliveries.length,
    timesOf: (sequence: number) => world.attempts.filter(({ delivery }) => delivery.sequence === sequence).map(({ beganMs }) => beganMs),
  }
}

describe.each(engines)('failing endpoints on $name', (engine) => {
  test('10,000 parcels behind an endpoint that refuses cause few attempts an hour', async () => {
    const { path, now, run, attempts, mend, pushParcels, id } = await openDown(engine)
    await pushParcels(1)
    // Insert in one statement the deliveries that one push for each parcel would queue.
    const asPushed = `insert into delivery (endpoint_id, parcel_id, sequence, previous_sequence, inbox_id, state, attempts, queued_at_ms, next_attempt_at_ms)
    with recursive nth(n) as (select 1 union all select n + 1 from nth where n < 9999)
    select ${id}, 1000000 + n, 1000000 + n, 0, (select inbox_id from delivery), 1, 0, ${NOON}, ${NOON} from nth`
    await changeStoredRows(path, asPushed)
    await run(now() + HOUR_MS)
    // There are a few attempts before the failure is noticed, then probes after 5, 10, 20 ... 160 s, and then one every five minutes.
    expect(attempts.length).toBeLessThan(50)
    expect(await storedNumber(path, 'select count(*) from attempt')).toBe(attempts.length)
    const before = attempts.length
    mend()
    await run(now() + 6 * MINUTE_MS)
    expect(await storedNumber(path, 'select count(*) from delivery where state = 2')).toBe(10_000)
    expect(attempts.length - before).toBe(10_000)
  })

  describe('an endpoint that is failing', () => {
    test('is probed with one untried delivery at a time, at intervals that grow to 5 min', async () => {
      const { now, run, attempts, pushParcels, endpoint } = await openDown(engine)
      await pushParcels(40)
      await run(now() + 1000)
      expect((await endpoint()).health.probing).not.toBeNull()
      const before = attempts.length
      await run(now() + HOUR_MS)
      const probes = attempts.slice(before)
      const gaps = probes.slice(1).map(({ beganMs }, nth) => Math.round((beganMs - (probes[nth]?.beganMs ?? 0)) / 1000))
      expect(gaps.slice(0, 8)).toEqual([10, 20, 40, 80, 160, 300, 300, 300])
      expect(new Set(attempts.map(({ delivery }) => delivery.sequence)).size).toBe(attempts.length)
    })

    test('stays failing after a restart', async () => {
      const { now, run, kill, attempts, pushParcels, endpoint } = await openDown(engine)
      await pushParcels(40)
      await run(now() + 20 * MINUTE_MS)
      const { health } = await endpoint()
      const before = attempts.length
      await kill()
      await run((health.probing?.atMs ?? 0) - 1)
      expect(attempts).toHaveLength(before)
      await run(now() + 2)
      expect(attempts).toHaveLength(before + 1)
    })

    test('O7: is disabled after 120 h of failures without a success, even over a restart', async () => {
      const { now, run, kill, pushParcels, endpoint } = await openDown(engine)
      await pushParcels(3)
      // Probes take long to simulate, so the hours without simulation are added to the stored sum.
      const hours = runsOn(engine, 100, 20)
      await run(now() + hours * HOUR_MS)
      expect((await endpoint()).disabled).toBeNull()
      await kill((path) => changeStoredRows(path, `update endpoint set failed_for_ms = failed_for_ms + ${(100 - hours) * HOUR_MS}`))
      await run(now() + 19 * HOUR_MS)
      expect((await endpoint()).disabled).toBeNull()
      await run(now() + 2 * HOUR_MS)
      expect((await endpoint()).disabled).toBe('failing')
    })

    test('is sent all waiting deliveries once it accepts one, whatever the schedule says', async () => {
      const { now, run, attempts, mend, pushParcels, countOf, endpoint } = await openDown(engine)
      await pushParcels(60)
      await run(now() + 5 * HOUR_MS)
      mend()
      await run(now() + 5 * MINUTE_MS + 2000)
      expect(await countOf('delivered')).toBe(60)
      const first = attempts.find(({ status }) => status === 200)
      expect((attempts.at(-1)?.endsMs ?? 0) - (first?.beganMs ?? 0)).toBeLessThan(1000)
      expect((await endpoint()).health).toMatchObject({ probing: null, failingSinceMs: null })
    })

    test('is sent everything if an operator retries it, or one delivery if only that is retried', async () => {
      const { now, run, writes, attempts, mend, pushParcels, countOf, endpoint, id, reads } = await openDown(engine)
      await pushParcels(30)
      await run(now() + HOUR_MS)
      const { deliveries } = await reads.listDeliveries({ endpointId: id, parcelId: null, state: 'retrying', before: null, limit: 1 })
      const deliveryId = deliveries[0]?.deliveryId ?? 0
      const before = attempts.length
      expect(await writes().retryDelivery({ deliveryId, nowMs: now() })).toBe('done')
      await run(now() + 100)
      expect(attempts.slice(before).map(({ delivery }) => delivery.deliveryId)).toEqual([deliveryId])
      expect((await endpoint()).health.probing).not.toBeNull()
      mend()
      expect(await writes().retryEndpoint({ id, nowMs: now() })).toBe('done')
      await run(now() + 1000)
      expect(await countOf('delivered')).toBe(30)
    })

    test('keeps only the newest attempts of a delivery', async () => {
      const { now, run, reads, pushParcels, attempts } = await openDown(engine)
      await pushParcels(1)
      await run(now() + 10 * HOUR_MS)
      expect(attempts.length).toBeGreaterThan(60)
      const [waiting] = (await reads.listDeliveries({ endpointId: null, parcelId: null, state: null, before: null, limit: 1 })).deliveries
      expect(waiting?.attempts).toBe(attempts.length)
      expect((await reads.findDelivery(waiting?.deliveryId ?? 0))?.attempts).toHaveLength(50)
    })
  })

  describe('an event that is never accepted', () => {
    const POISON = 1
    const isPoison = ({ sequence }: ClaimedDelivery) => sequence === POISON
    const openPoisoned = () => openDown(engine, { statusOf: (delivery) => (isPoison(delivery) ? 500 : 200) })

    test('does not make its endpoint failing while others are accepted, and is given up on schedule', async () => {
      const { now, run, pushParcels, endpoint, countOf, timesOf } = await openPoisoned()
      await pushParcels(1)
      for (let nth = 1; nth < 30; nth++) {
        await pushParcels(1, nth)
        await run(now() + MINUTE_MS)
        expect((await endpoint()).health.probing).toBeNull()
      }
      expect([await countOf('delivered'), await countOf('dead')]).toEqual([29, 1])
      expect(timesOf(POISON)).toHaveLength(3)
    })

    test('makes its endpoint failing if no others are accepted, but delays no later event', async () => {
      const { now, run, pushParcels, endpoint, timesOf, countOf } = await openPoisoned()
      await pushParcels(1)
      await run(now() + HOUR_MS)
      expect((await endpoint()).health.probing).not.toBeNull()
      await pushParcels(1, 1)
      const pushedMs = now()
      await run(now() + 100)
      expect(timesOf(2)).toEqual([pushedMs])
      expect([await countOf('delivered'), (await endpoint()).health.probing]).toEqual([1, null])
    })

    test.each([422, 500])('7.4: three parcels whose events are answered %i hold up no other parcel', async (status) => {
      const { now, run, pushParcels, endpoint, countOf } = await openDown(engine, {
        statusOf: ({ sequence }) => (sequence <= 3 ? status : 200),
      })
      await pushParcels(3)
      await run(now() + HOUR_MS)
      await pushParcels(30, 3)
      await run(now() + 1000)
      expect([await countOf('delivered'), (await endpoint()).health.probing]).toEqual([30, null])
    })

    test('7.4: after many events were refused with 422, an untried event is sent every 5 s', async () => {
      const { now, run, pushParcels, attempts, endpoint } = await openDown(engine, { statusOf: () => 422 })
      await pushParcels(40)
      await run(now() + 1000)
      expect((await endpoint()).health.probing).not.toBeNull()
      const before = attempts.length
      await run(now() + 60_000)
      const probes = attempts.slice(before)
      const gaps = probes.slice(1).map(({ beganMs }, nth) => beganMs - (probes[nth]?.beganMs ?? 0))
      expect(probes.length).toBeGreaterThan(8)
      expect(Math.max(...gaps)).toBeLessThan(5100)
      expect(new Set(attempts.map(({ delivery }) => delivery.sequence)).size).toBe(attempts.length)
    })

    test('does not keep a mended endpoint failing, because others are probed too', async () => {
      const { now, run, mend, pushParcels, countOf } = await openDown(engine, {
        statusOf: (delivery, upAtMs) => (isPoison(delivery) && upAtMs < Number.POSITIVE_INFINITY ? 500 : null),
      })
      await pushParcels(3)
      await run(now() + 3 * HOUR_MS)
      mend()
      await run(now() + 10 * MINUTE_MS + 1000)
      expect(await countOf('delivered')).toBe(2)
    })

    test('is tried early with the others after a recovery, and that attempt does not count', async () => {
      let isDown = false
      const { now, run, pushParcels, timesOf, reads } = await openDown(engine, {
        statusOf: (delivery) => (isPoison(delivery) || isDown ? 500 : 200),
      })
      await pushParcels(2)
      await run(now() + MINUTE_MS)
      const [first = 0, second = 0] = timesOf(POISON)
      expect(second - first).toBeLessThan(6000)
      const planned = second + 300_000
      isDown = true
      await pushParcels(8, 2)
      await run(now() + 3000)
      isDown = false
      await run(planned - 1000)
      // The third attempt came with the others, before its planned time.
      expect(timesOf(POISON)).toHaveLength(3)
      await pushParcels(1, 10)
      await run(planned + 1000)
      expect(timesOf(POISON)).toHaveLength(4)
      const poison = (await reads.listDeliveries({ endpointId: null, parcelId: null, state: 'dead', before: null, limit: 10 })).deliveries
      expect(poison).toMatchObject([{ sequence: POISON, attempts: 4, reason: 'receiver_refused' }])
    })
  })
})

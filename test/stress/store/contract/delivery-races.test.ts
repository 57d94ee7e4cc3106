import { describe, expect, test } from 'vitest'
import type { DeliverySelection } from '../../../../src/core/domain/delivery/delivery-list.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { createCourier } from '../../../support/delivery/courier.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { LONG } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'
import { storedNumber } from '../../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const RACES = LONG ? 200 : 40
const WAITING = 'select count(*) from delivery where state < 2'

async function openRaced(engine: Engine) {
  const store = await openStore(NOON, engine)
  const { id } = await addEndpoint(store.writes, NOON)
  const courier = createCourier(store.writes, NOON)
  let second = 0
  const timeOf = (nth: number) => new Date(NOON - 86_400_000 + nth * 1000).toISOString()
  const pushAt = (nth: number, trackingIds: readonly string[]) =>
    store.record(incomingPush(pushBody({ trackingIds, eventTime: timeOf(nth) }), NOON))
  const any: DeliverySelection = {
    endpointId: id,
    states: ['delivered'],
    fromSequence: 0,
    fromMs: 0,
    deliveryId: null,
    sequence: null,
    parcelId: null,
  }
  return {
    ...store,
    id,
    courier,
    push: (trackingId: string) => pushAt(second++, [trackingId]),
    /** Repeats the last event with the identifiers of two parcels. This joins the parcels, and adds no entry. */
    join: (...trackingIds: readonly string[]) => pushAt(second - 1, trackingIds),
    replay: (change: Partial<DeliverySelection>, limit: number, to = id) =>
      store.writes.replayDeliveries({ selection: { ...any, ...change }, to, after: null, untilMs: NOON, limit, nowMs: NOON }),
    waiting: () => storedNumber(store.path, WAITING),
  }
}

describe.each(engines)('races of deliveries on $name', (engine) => {
  test(`7.3: ${RACES} races of settling, replaying and recording leave nothing waiting`, async () => {
    const { push, replay, courier, waiting, parcelIdOf } = await openRaced(engine)
    for (let entry = 0; entry < 4; entry++) await push('1001')
    const parcelId = await parcelIdOf('1001')
    await courier.drain()
    for (let race = 0; race < RACES; race++) {
      // One or two ended deliveries are replayed, while one is under way and another is recorded.
      await Promise.all([
        replay({ parcelId, fromSequence: race % 3 }, 1 + (race % 2)),
        courier.round(),
        race % 10 === 0 ? push('1001') : replay({ parcelId, fromSequence: race % 4 }, 1),
      ])
      await Promise.all([courier.round(), replay({ parcelId }, 1)])
      if (race % 4 !== 0) continue
      await courier.drain()
      expect([race, await waiting(), courier.wrong]).toEqual([race, 0, []])
    }
  })

  test('simultaneous replays of a delivery queue it once for each endpoint', async () => {
    const { push, replay, courier, waiting, writes, reads, id } = await openRaced(engine)
    const { id: otherId } = await addEndpoint(writes, NOON, { name: 'other', enabled: false })
    await push('1001')
    await courier.drain()
    const { deliveries } = await reads.listDeliveries({ endpointId: id, parcelId: null, state: null, before: null, limit: 10 })
    const deliveryId = deliveries[0]?.deliveryId ?? 0
    for (let race = 0; race < RACES / 4; race++) {
      const replayed = await Promise.all([1, 2, 3, 4].map(() => replay({ deliveryId }, 1)))
      expect(replayed.reduce((sum, one) => sum + (one?.count ?? 0), 0)).toBe(1)
      await courier.drain()
    }
    await Promise.all([1, 2, 3, 4].map(() => replay({ deliveryId }, 1, otherId)))
    const copies = await reads.listDeliveries({ endpointId: otherId, parcelId: null, state: null, before: null, limit: 10 })
    expect(copies.deliveries).toHaveLength(1)
    await writes.changeEndpoint({ id: otherId, change: { enabled: true }, key: null, nowMs: NOON })
    await courier.drain()
    expect([await waiting(), courier.wrong]).toEqual([0, []])
  })

  test('7.3: operator events leave in order while they are queued, settled and replayed', async () => {
    const { writes, replay, courier, waiting, reads } = await openRaced(engine)
    await writes.syncEndpoints([], NOON, 'http://operator.internal/')
    const operator = (await reads.listEndpoints()).find(({ origin }) => origin === 'operator')?.endpoint.id ?? ''
    for (let race = 0; race < RACES / 4; race++) {
      await Promise.all([
        writes.recordOperatorEvent({ event: 'credentials_refused' }, NOON),
        writes.recordOperatorEvent({ event: 'credentials_refused' }, NOON),
        courier.round((nth) => (nth + race) % 2 === 0),
        replay({ endpointId: operator, fromSequence: race }, 2, operator),
        courier.round(),
      ])
      if (race % 4 !== 3) continue
      await courier.drain()
      expect([race, await waiting(), courier.wrong]).toEqual([race, 0, []])
    }
  })

  test('7.3: a delivery under way is not claimed again while its parcel is joined to another', async () => {
    const { push, join, courier, waiting } = await openRaced(engine)
    for (let race = 0; race < RACES; race++) {
      const [one, other] = [`3${1000 + race}`, `4${1000 + race}`]
      await push(one)
      await courier.drain()
      await push(other)
      await courier.round()
      const rounds = Array.from({ length: 5 }, () => courier.round(() => false))
      await Promise.all([join(one, other), ...rounds])
      await courier.drain()
      expect([race, await waiting(), courier.wrong]).toEqual([race, 0, []])
    }
  })

  test('7.3: a delivery replayed while its parcel is joined gets its position in the joined parcel', async () => {
    const { push, join, replay, courier, waiting, parcelIdOf } = await openRaced(engine)
    for (let race = 0; race < RACES / 4; race++) {
      const [one, other] = [`1${1000 + race}`, `2${1000 + race}`]
      for (const id of [one, other, one, other]) await push(id)
      await courier.drain()
      const parcelId = await parcelIdOf(other)
      await Promise.all([join(one, other), replay({ parcelId }, 2), race % 4 === 0 ? courier.round() : null])
      await courier.drain()
      expect([race, await waiting(), courier.wrong]).toEqual([race, 0, []])
    }
  })
})

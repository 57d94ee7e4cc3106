import { describe, expect, test } from 'vitest'
import { openDeliveryWorld } from '../../../support/delivery/delivery-world.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'

const SECOND_MS = 1000
const FOR_GOOD = [400, 409, 413, 415, 422]
const NOT_FOR_GOOD = [401, 403, 404, 408, 418, 425, 429, 500, 503]

const ofParcel = (parcel: number, second = 0) => ({
  trackingIds: [String(100_000 + parcel)],
  eventTime: new Date(Date.parse('2026-03-01T10:00:00Z') + second * SECOND_MS).toISOString(),
})

describe.each(engines)('refused events on $name', (engine) => {
  /** Opens an endpoint that refuses the first event of each parcel with the status given for the parcel. */
  async function openRefusing(statuses: readonly number[], refusals: 'wait' | 'skip') {
    const firsts = new Map<number, number>()
    const world = await openDeliveryWorld(engine, NOON, {
      statusOf: ({ parcelId, sequence }) => {
        const first = firsts.get(parcelId) ?? sequence
        firsts.set(parcelId, first)
        const status = statuses[[...firsts.keys()].indexOf(parcelId)]
        return sequence === first && status !== undefined ? status : 200
      },
      settings: { refusals, concurrency: 1 },
    })
    const inState = async (state: 'delivered' | 'dead' | 'retrying') =>
      (await world.reads.listDeliveries({ endpointId: world.id, parcelId: null, state, before: null, limit: 100 })).deliveries
    async function pushTwo(parcel: number) {
      await world.push(ofParcel(parcel))
      await world.push(ofParcel(parcel, 1))
      await world.run(world.now() + SECOND_MS)
    }
    return { ...world, inState, pushTwo }
  }

  test.each(FOR_GOOD)('an event refused with %i is dead if refusals are skipped, and its successor is sent', async (status) => {
    const { inState, pushTwo } = await openRefusing([status], 'skip')
    await pushTwo(1)
    const [dead, delivered] = [await inState('dead'), await inState('delivered')]
    expect(dead).toMatchObject([{ attempts: 1, reason: 'receiver_refused' }])
    expect(delivered).toHaveLength(1)
    expect(delivered[0]?.sequence).toBeGreaterThan(dead[0]?.sequence ?? Number.POSITIVE_INFINITY)
  })

  test.each(NOT_FOR_GOOD)('an event answered %i is retried even if refusals are skipped, and its successor waits', async (status) => {
    const { inState, pushTwo } = await openRefusing([status], 'skip')
    await pushTwo(1)
    expect(await inState('retrying')).toHaveLength(1)
    expect([await inState('dead'), await inState('delivered')]).toEqual([[], []])
  })

  test('an event refused with 422 is retried if refusals wait, and its successor waits', async () => {
    const { inState, pushTwo } = await openRefusing([422], 'wait')
    await pushTwo(1)
    expect(await inState('retrying')).toHaveLength(1)
    expect([await inState('dead'), await inState('delivered')]).toEqual([[], []])
  })

  test('an endpoint that fails while it skips refusals gets the later events when it works again', async () => {
    let isMended = false
    const world = await openDeliveryWorld(engine, NOON, {
      statusOf: () => (isMended ? 200 : 400),
      settings: { refusals: 'skip', concurrency: 1 },
    })
    for (let parcel = 0; parcel < 20; parcel++) await world.push(ofParcel(parcel))
    const countOf = async (state: 'dead' | 'delivered') =>
      (await world.reads.listDeliveries({ endpointId: world.id, parcelId: null, state, before: null, limit: 100 })).deliveries.length
    await world.run(NOON + HOUR_MS)
    const lost = await countOf('dead')
    expect(lost).toBeLessThanOrEqual(5)
    expect((await world.endpoint()).health.probing).not.toBeNull()
    isMended = true
    await world.run(NOON + 2 * HOUR_MS)
    expect([await countOf('dead'), await countOf('delivered')]).toEqual([lost, 20 - lost])
  })
})

import { describe, expect, test } from 'vitest'
import { openDeliveryWorld } from '../../../support/delivery/delivery-world.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'

const second = (nth: number) => ({
  trackingIds: ['100001'],
  eventTime: new Date(Date.parse('2026-03-01T10:00:00Z') + nth * 1000).toISOString(),
})

describe.each(engines)('skipped deliveries on $name', (engine) => {
  async function openTwo(answers: { readonly first: number; readonly latencyMs?: number }) {
    let first: number | null = null
    const world = await openDeliveryWorld(engine, NOON, {
      statusOf: ({ sequence }) => {
        first ??= sequence
        return sequence === first ? answers.first : 200
      },
      latencyMs: () => answers.latencyMs ?? 20,
    })
    for (const nth of [0, 1]) await world.push(second(nth))
    const list = async () =>
      (
        await world.reads.listDeliveries({ endpointId: world.id, parcelId: null, state: null, before: null, limit: 10 })
      ).deliveries.toReversed()
    const skip = async (nth: number) => {
      const deliveryId = (await list())[nth]?.deliveryId ?? 0
      return await world.writes().skipDelivery({ deliveryId })
    }
    const standing = async () => (await list()).map(({ state, reason }) => [state, reason])
    return { ...world, skip, standing }
  }

  test('a retrying delivery that is skipped is dead, and its successor is sent at once', async () => {
    const { run, now, skip, standing } = await openTwo({ first: 500 })
    await run(now() + 100)
    expect(await standing()).toEqual([
      ['retrying', null],
      ['queued', null],
    ])
    expect(await skip(0)).toBe('done')
    await run(now() + 100)
    expect(await standing()).toEqual([
      ['dead', 'skipped'],
      ['delivered', null],
    ])
    expect([await skip(0), await skip(1)]).toEqual(['ended', 'ended'])
  })

  test.each([
    [200, ['delivered', null]],
    [500, ['dead', 'skipped']],
  ] as const)('a delivery skipped during an attempt answered %i ends, and its successor is sent', async (status, expected) => {
    const { run, now, skip, standing, attempts } = await openTwo({ first: status, latencyMs: 1000 })
    await run(now() + 100)
    expect(await skip(0)).toBe('done')
    await run(now() + 800)
    expect(attempts).toHaveLength(1)
    await run(now() + 3000)
    expect(attempts.map(({ beganMs }) => beganMs - NOON >= 1000)).toEqual([false, true])
    expect(await standing()).toEqual([expected, ['delivered', null]])
  })

  test('a delivery skipped during an attempt that a kill interrupts is dead, and not sent again', async () => {
    const { run, now, skip, standing, attempts, kill } = await openTwo({ first: 200, latencyMs: 1000 })
    await run(now() + 100)
    await skip(0)
    await kill()
    await run(now() + 3000)
    expect(await standing()).toEqual([
      ['dead', 'skipped'],
      ['delivered', null],
    ])
    expect(attempts.map(({ delivery }) => delivery.previousSequence > 0)).toEqual([false, true])
  })

  test('skipping a delivery behind an earlier one does not affect the earlier one', async () => {
    const { run, now, skip, standing } = await openTwo({ first: 500 })
    await run(now() + 100)
    expect(await skip(1)).toBe('done')
    await run(now() + 100)
    expect(await standing()).toEqual([
      ['retrying', null],
      ['dead', 'skipped'],
    ])
  })
})

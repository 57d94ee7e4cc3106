import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

/** On a busy machine pushes may come faster than the endpoint catches up, so their number is limited. */
const PUSHES_MAX = 1000

async function openRaced(engine: Engine) {
  const store = await openStore(NOON, engine)
  let second = 0
  const push = async () => {
    const eventTime = new Date(NOON - 86_400_000 + second++ * 1000).toISOString()
    return await store.record(incomingPush(pushBody({ trackingIds: [String(1000 + (second % 5))], eventTime }), NOON))
  }
  const replayFeed = async (limit = 100) => {
    while (!(await store.writes.replayFeed({ limit, nowMs: NOON })).isDone);
  }
  const endpointOf = async (id: string) => (await store.reads.listEndpoints()).find(({ endpoint }) => endpoint.id === id)?.endpoint
  return { ...store, push, replayFeed, endpointOf }
}

describe.each(engines)('races of endpoints on $name', (engine) => {
  test('7.4: an endpoint that starts in the past gets every event once while more are recorded', async () => {
    const { push, replayFeed, writes } = await openRaced(engine)
    for (let nth = 0; nth < 3; nth++) await push()
    let pushed = 3
    const endpoints = []
    for (let race = 0; race < 40; race++) {
      const from = pushed - 1
      endpoints.push({ from, ...(await addEndpoint(writes, NOON, { name: `late ${race}`, from })) })
      await Promise.all([replayFeed(), push(), push()])
      pushed += 2
    }
    await replayFeed()
    for (const { from, take } of endpoints) {
      const sequences = (await take()).map(({ sequence }) => sequence).toSorted((a, b) => a - b)
      expect(sequences).toEqual(Array.from({ length: pushed - from + 1 }, (_, nth) => from + nth))
    }
  })

  test('7.4: an endpoint catches up while pushes are recorded, and neither waits for the other', async () => {
    const { push, replayFeed, writes } = await openRaced(engine)
    for (let nth = 0; nth < 10; nth++) await push()
    let pushed = 10
    let isOver = false
    const recording = Promise.all(
      [1, 2, 3].map(async () => {
        for (; !isOver && pushed < PUSHES_MAX; pushed++) await push()
      }),
    )
    const endpoints = []
    for (const name of ['one', 'two', 'three', 'four']) {
      endpoints.push(await addEndpoint(writes, NOON, { name, from: 1 }))
      await replayFeed()
    }
    isOver = true
    await recording
    for (const { take } of endpoints) {
      const sequences = (await take()).map(({ sequence }) => sequence).toSorted((a, b) => a - b)
      expect(sequences).toEqual(Array.from({ length: pushed }, (_, nth) => nth + 1))
    }
  })

  test('concurrent changes of an endpoint are all kept, and it skips and repeats no event', async () => {
    const { push, replayFeed, writes, endpointOf } = await openRaced(engine)
    const { id, take } = await addEndpoint(writes, NOON, { name: 'shop' })
    const { id: laterId, take: takeLater } = await addEndpoint(writes, NOON, { name: 'later' })
    const change = (nth: number, of: object, endpointId = id) =>
      writes.changeEndpoint({ id: endpointId, change: of, key: null, nowMs: NOON + nth })
    for (let race = 1; race <= 40; race++) {
      const { id: behindId, take: takeBehind } = await addEndpoint(writes, NOON, { name: `behind ${race}`, from: race })
      await Promise.all([
        change(race, { concurrency: race }),
        change(race, { url: `http://shop.internal/${race}` }),
        change(race, { backfill: race % 2 === 0 }),
        change(race, { concurrency: race }, laterId),
        change(race, { concurrency: race }, behindId),
        replayFeed(),
        push(),
      ])
      const changed = { concurrency: race, url: `http://shop.internal/${race}`, backfill: race % 2 === 0 }
      expect([await endpointOf(id), await endpointOf(laterId), await endpointOf(behindId)]).toMatchObject([
        changed,
        { concurrency: race },
        { concurrency: race },
      ])
      await replayFeed()
      const sequences = [await take(), await takeLater(), await takeBehind()].map((of) => of.map(({ sequence }) => sequence))
      expect(sequences).toEqual([[race], [race], [race]])
      await writes.removeEndpoint({ id: behindId, nowMs: NOON })
    }
  })
})

import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { addEndpoint, endpointOf } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { NOON } from '../../support/runner/constants.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { newPlace } from '../../support/store/engines.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

/** The number of deliveries during the long transaction. At a hundred a second, the long form lasts five minutes. */
const DELIVERED = LONG ? 30_000 : 3000
const AT_ONCE = 250
const EVERY_MS = 10
const FINDS = 51

const medianOf = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

async function openWorld() {
  const place = await newPlace(postgres)
  const { writes, record, pass, now } = await openStore(NOON, postgres, place)
  const { id } = await addEndpoint(writes, NOON)
  let nth = 0
  const take = () => endpointOf(writes, id, now()).take()
  const next = () => {
    nth += 1
    pass(EVERY_MS)
    const eventTime = new Date(NOON - 86_400_000 + nth).toISOString()
    return incomingPush(pushBody({ trackingIds: [String(100_000 + (nth % 2000))], eventTime }), now())
  }
  return {
    place,
    async deliver(count: number) {
      for (let done = 0; done < count; done += AT_ONCE) {
        await record(...Array.from({ length: AT_ONCE }, next))
        expect(await take()).toHaveLength(AT_ONCE)
      }
    },
    /** Measures how long the dispatcher takes to find a due delivery, in milliseconds. */
    async find(): Promise<number> {
      await record(next())
      const fromMs = performance.now()
      const { claimed } = await writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: now() })
      const tookMs = performance.now() - fromMs
      expect(claimed).toHaveLength(1)
      await take()
      return tookMs
    },
  }
}

/** The transaction keeps the server from removing dead rows, which pile up at the front of the index. */
test(`S18: a long transaction over ${DELIVERED} deliveries does not slow down finding due ones`, async () => {
  const [read, unread] = [await openWorld(), await openWorld()]
  for (const { deliver } of [read, unread]) await deliver(1000)
  await withClient(read.place, async (client) => {
    await client.query('begin isolation level repeatable read')
    await client.query('select count(*) from delivery')
    await read.deliver(DELIVERED)
    const times: { readonly usual: number; readonly beside: number }[] = []
    for (let at = 0; at < FINDS; at++) times.push({ usual: await unread.find(), beside: await read.find() })
    const [usualMs, besideMs] = [medianOf(times.map(({ usual }) => usual)), medianOf(times.map(({ beside }) => beside))]
    console.log(`a due delivery is found in ${usualMs.toFixed(2)} ms, and beside a long reader in ${besideMs.toFixed(2)} ms`)
    expect(besideMs).toBeLessThan(2 * usualMs)
    await client.query('commit')
  })
})

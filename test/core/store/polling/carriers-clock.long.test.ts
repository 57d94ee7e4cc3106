import { describe, expect, test } from 'vitest'
import { aPoll } from '../../../support/history/builders.ts'
import { cadence } from '../../../support/history/policy.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const YEAR_9999 = '9999-12-31T23:59:59.000Z'
const DELIVERED = { status: 'DeliverySucceeded', detailedStatus: 'Delivered' }
const CREATED = { status: 'Created', detailedStatus: 'Created' }

const iso = (atMs: number) => new Date(atMs).toISOString()

describe.each(engines)('times of the carrier that are ahead of the relay, on $name', (engine) => {
  async function world() {
    const store = await openStore(NOON, engine)
    const stateOf = async (id: string) => {
      const found = await store.reads.inspectParcel(id)
      if (found === null) throw new Error(`no parcel has the identifier ${id}`)
      return found.state
    }
    const dueIn = async (id: string) => {
      const { nextPollAtMs } = await stateOf(id)
      return nextPollAtMs === null ? null : nextPollAtMs - store.now()
    }
    return { ...store, stateOf, dueIn }
  }

  test('6.1, B11: a delivery dated two hours ahead in local time gets its last check at once', async () => {
    const { push, dueIn } = await world()
    await push({ ...DELIVERED, trackingIds: ['1001'], eventTime: iso(NOON) })
    await push({ ...DELIVERED, trackingIds: ['1002'], eventTime: iso(NOON + 2 * HOUR_MS) })
    const [right, ahead] = [await dueIn('1001'), await dueIn('1002')]
    expect([right, ahead]).toEqual([0, 0])
  })

  test.each([
    ['delivered', DELIVERED],
    ['stale', CREATED],
  ])('6.1, B11: a parcel whose newest entry is dated 9999 is polled normally, and ends as %s', async (reason, words) => {
    const { record, writes, stateOf, pass, now } = await world()
    await writes.watch({ identifier: '1001', nowMs: NOON })
    const entry = { ...words, eventTimestamp: YEAR_9999 }
    let polls = 0
    for (const endMs = NOON + cadence.staleAfterMs + 5 * DAY_MS; now() < endMs; polls++) {
      const observation = aPoll({ asked: '1001', trackingIds: ['1001'], statuses: [entry], askedAtMs: now() })
      await record({ kind: 'poll', observation, watch: false })
      const { nextPollAtMs, stopped } = await stateOf('1001')
      if (stopped !== null || nextPollAtMs === null) break
      expect(nextPollAtMs - now()).toBeLessThan(4 * DAY_MS)
      pass(Math.max(1000, nextPollAtMs - now()))
    }
    expect((await stateOf('1001')).stopped).toBe(reason)
    expect(polls).toBeGreaterThan(2)
  })

  test('6.1, B11: an entry dated ahead is the newest, and its age counts from when it was learnt', async () => {
    const { push, poll, pass, stateOf, reads } = await world()
    await push({ ...CREATED, trackingIds: ['1001'], eventTime: YEAR_9999 })
    pass(HOUR_MS)
    await push({ status: 'TerminalArrived', trackingIds: ['1001'], eventTime: iso(NOON + HOUR_MS) })
    pass(HOUR_MS)
    await poll({ asked: '1001', trackingIds: ['1001'], statuses: [{ ...CREATED, eventTimestamp: '9999-12-31T23:59:59.5Z' }] })
    expect((await reads.findParcel('1001'))?.entries.map(({ status }) => status)).toEqual(['Created', 'TerminalArrived'])
    expect((await stateOf('1001')).latest).toMatchObject({ status: 'Created', learntAtMs: NOON })
  })

  test('6.1, B11: a join keeps the time at which the newest entry, dated ahead, was learnt', async () => {
    const { push, pass, stateOf } = await world()
    await push({ ...CREATED, trackingIds: ['1001'], eventTime: iso(NOON) })
    await push({ ...CREATED, trackingIds: ['1002'], eventTime: YEAR_9999 })
    pass(HOUR_MS)
    await push({ status: 'TerminalArrived', trackingIds: ['1001', '1002'], eventTime: iso(NOON + HOUR_MS) })
    expect((await stateOf('1001')).latest).toMatchObject({ status: 'Created', learntAtMs: NOON })
  })
})

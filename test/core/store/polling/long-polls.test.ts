import { describe, expect, test } from 'vitest'
import { createPoller, createPollsUnderWay } from '../../../../src/core/flow/polling/poller.ts'
import type { Refreshed } from '../../../../src/core/flow/polling/refresh.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const CONCURRENCY = 4

describe.each(engines)('long polls on $name', (engine) => {
  test('a poll that waits longer than its lease is not claimed again', async () => {
    const store = await openStore(NOON, engine)
    await store.writes.watchMany({ identifiers: Array.from({ length: 12 }, (_, at) => `WT00${at + 10}`), nowMs: NOON })
    store.pass(120_000)
    const [first, second] = [await store.parcelIdOf('WT0010'), await store.parcelIdOf('WT0011')]
    const asking = createPollsUnderWay()
    const turn = Promise.withResolvers<Refreshed>()
    const asked: number[] = []
    const pass = createPoller(
      {
        write: store.writes,
        underWay: asking,
        refresh: {
          async poll({ parcelId, identifiers: [identifier = ''] }) {
            asked.push(parcelId)
            if (parcelId === first) return await turn.promise
            // Each of the other polls takes a minute, so that six minutes pass while the first one waits.
            store.pass(60_000)
            await store.poll({ asked: identifier, trackingIds: [`9${identifier.slice(2)}`] })
            return 'recorded'
          },
        },
        meter: { missedPush: () => undefined },
        clock: { now: store.now, monotonic: store.now },
        log: createLogBook().log,
        isQuiet: () => false,
      },
      { concurrency: CONCURRENCY },
    )
    const ordered = Promise.withResolvers<void>()
    const order = asking.during(second, () => ordered.promise)
    const passes = (async () => {
      while ((await pass()) === 'busy');
    })()
    await expect.poll(() => asked.length).toBe(11)
    store.pass(6 * 60_000)
    turn.resolve('unavailable')
    await passes
    expect([asked.length, new Set(asked).size, asked.includes(second)]).toEqual([11, 11, false])
    ordered.resolve()
    await order
    await pass()
    expect(asked.at(-1)).toBe(second)
  })
})

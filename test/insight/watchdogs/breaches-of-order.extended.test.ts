import { describe, expect, test } from 'vitest'
import { createManageWatchdogs } from '../../../src/insight/watchdogs/manage-watchdogs.ts'
import type { WatchdogRule } from '../../../src/insight/watchdogs/watchdog.rules.ts'
import { PARCELS_AT_ONCE } from '../../../src/insight/watchdogs/watchdogs.rows.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { openWatched } from '../../support/insight/open-watched.ts'
import { HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { changeStoredRows } from '../../support/store/stored-rows.ts'

const QUERY = { rule: null, isOpen: false, parcel: null, reference: null, cursor: null, limit: 100 }
const SCANNED = aRule({ name: 'at-all', notWithinMs: HOUR_MS })

describe.each(engines)('which parcels of an order are late, and why, on $name', (engine) => {
  async function open(rules: readonly WatchdogRule[] = [aRule(), SCANNED]) {
    const store = await openWatched(engine, rules)
    const current = { rules, zone: 'UTC' }
    const { list } = createManageWatchdogs({
      reads: store.reads,
      clock: { now: store.now, monotonic: store.now },
      rules: () => current,
      yieldToOthers: async () => undefined,
    })
    const of = async (identifier: string, reference: string) => {
      await store.scan('Ingested', NOON, { trackingIds: [identifier] })
      const context = { reference, labels: {}, note: null }
      await store.writes.saveOrder({ identifier, context, nowMs: store.now() })
    }
    /** Turns the pages of so many breaches of an order. */
    const pages = async (reference: string, limit: number) => {
      const read = []
      for (let cursor: string | null = null; ; ) {
        const { breaches, next } = await list({ ...QUERY, reference, limit, cursor })
        read.push(breaches.map(({ identifiers: [first = ''], rule }) => `${first} ${rule}`))
        if (next === null) return read
        cursor = next
      }
    }
    return { ...store, of, list, pages, current }
  }

  test('parcel by parcel, over pages of any size, each breach once, with the order and the words of its rule', async () => {
    const { of, list, pages, pass, look, scan } = await open()
    for (const [identifier, order] of [
      ['LATE0001', 'A-1'],
      ['OTHER001', 'B-1'],
      ['LATE0002', 'A-1'],
      ['DONE0001', 'A-1'],
    ] as const)
      await of(identifier, order)
    pass(2 * HOUR_MS)
    await look()
    await scan('TerminalArrived', NOON + HOUR_MS, { trackingIds: ['DONE0001'] })
    pass(48 * HOUR_MS)
    await look()
    const { breaches } = await list({ ...QUERY, reference: 'A-1', isOpen: true })
    expect(breaches.map(({ identifiers: [first], reference, rule, why }) => [first, reference, rule, why])).toEqual([
      ['LATE0001', 'A-1', 'no-scan', 'Ingested, and nothing within 2d'],
      ['LATE0001', 'A-1', 'at-all', 'Ingested, and nothing within 1h'],
      ['LATE0002', 'A-1', 'no-scan', 'Ingested, and nothing within 2d'],
      ['LATE0002', 'A-1', 'at-all', 'Ingested, and nothing within 1h'],
    ])
    expect((await list({ ...QUERY, reference: 'A-1', rule: 'no-scan' })).breaches).toHaveLength(2)
    const all = ['LATE0001 no-scan', 'LATE0001 at-all', 'LATE0002 no-scan', 'LATE0002 at-all', 'DONE0001 at-all']
    for (const limit of [1, 2, 3, 5, 100]) {
      const read = await pages('A-1', limit)
      expect(read.flat()).toEqual(all)
      expect(Math.max(...read.map((page) => page.length))).toBeLessThanOrEqual(limit)
    }
    const [other] = (await list({ ...QUERY, parcel: 'OTHER001' })).breaches
    expect([other?.reference, other?.why]).toEqual(['B-1', 'Ingested, and nothing within 2d'])
  })

  test('an order without late parcels has none; one that nobody knows, both filters, and a wrong cursor are refused', async () => {
    const { of, list } = await open()
    await of('FINE0001', 'A-1')
    expect(await list({ ...QUERY, reference: 'A-1' })).toEqual({ breaches: [], next: null })
    await expect(list({ ...QUERY, reference: 'A-2' })).rejects.toMatchObject({ code: 'not_found' })
    await expect(list({ ...QUERY, reference: 'A-1', parcel: 'FINE0001' })).rejects.toMatchObject({ code: 'bad_request' })
    for (const cursor of ['1', '1.', '1.2.3', '-1.2', 'x'])
      await expect(list({ ...QUERY, reference: 'A-1', cursor })).rejects.toMatchObject({ code: 'bad_request' })
  })

  test('a page looks at some parcels of a great order, and the next goes on', async () => {
    const { pages, path } = await open()
    const numbers = Array.from({ length: 2 * PARCELS_AT_ONCE + 1 }, (_, nth) => nth + 1)
    const orders = numbers.map((id) => `(${id}, ${id}, 'GREAT', '{}')`).join()
    await changeStoredRows(path, `insert into order_context (parcel_id, sequence, reference, labels) values ${orders}`)
    const breach = `insert into watchdog_breach (parcel_id, rule, since_ms, is_checked, told_at_ms) values (${numbers.length}, 'no-scan', 1, 1, 1)`
    await changeStoredRows(path, breach)
    expect((await pages('GREAT', 100)).map((page) => page.length)).toEqual([0, 0, 1])
  })

  test('what an earlier rule of the name has told, and is over, is not explained by the rule of now', async () => {
    const { of, list, pass, look, take, current, scan } = await open()
    await of('LATE0001', 'A-1')
    pass(2 * HOUR_MS)
    await look()
    const why = async () => (await list({ ...QUERY, reference: 'A-1' })).breaches.map((one) => one.why)
    expect(await why()).toEqual(['Ingested, and nothing within 1h'])
    await scan('TerminalArrived', NOON + HOUR_MS, { trackingIds: ['LATE0001'] })
    await look()
    expect(await why()).toEqual(['Ingested, and nothing within 1h'])
    pass(HOUR_MS)
    const changed = [aRule({ name: 'at-all', notWithinMs: 3 * HOUR_MS })]
    current.rules = changed
    await take(changed)
    await look()
    expect(await why()).toEqual([null])
    current.rules = []
    expect(await why()).toEqual([null])
  })
})

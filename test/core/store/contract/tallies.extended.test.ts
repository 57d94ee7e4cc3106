import { describe, expect, test } from 'vitest'
import { type Counts, spanStart, type TallyAddition, type TallyFlush } from '../../../../src/core/domain/admin/tally.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const pushes = (fromMs: number, counts: Counts): TallyAddition => ({ kind: 'pushes', fromMs, counts })
let flushes = 0
const flush = (additions: readonly TallyAddition[]): TallyFlush => ({ by: 'relay', number: ++flushes, additions })
const ALWAYS = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }

describe.each(engines)('tallies on $name', (engine) => {
  test('counts are added to those of their hour and of their day', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    await writes.addTallies(flush([pushes(NOON, { recorded: 2, duplicate: 1 }), pushes(NOON + HOUR_MS, { recorded: 5 })]))
    await writes.addTallies(flush([pushes(NOON, { recorded: 3, 'odd "name\' ?': 1 })]))
    expect(await reads.listTallies({ span: 'hour', kind: 'pushes', ...ALWAYS })).toEqual([
      { fromMs: NOON, counts: { recorded: 5, duplicate: 1, 'odd "name\' ?': 1 } },
      { fromMs: NOON + HOUR_MS, counts: { recorded: 5 } },
    ])
    expect(await reads.listTallies({ span: 'day', kind: 'pushes', ...ALWAYS })).toEqual([
      { fromMs: spanStart('day', NOON), counts: { recorded: 10, duplicate: 1, 'odd "name\' ?': 1 } },
    ])
    expect(await reads.listTallies({ span: 'hour', kind: 'polls', ...ALWAYS })).toEqual([])
    expect(await reads.listTallies({ span: 'hour', kind: 'pushes', fromMs: NOON + 1, toMs: NOON + HOUR_MS })).toEqual([])
  })

  test('the lowest count of free bytes is kept', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    for (const free of [700_000_000_000, 500_000_000_001, 600_000_000_000])
      await writes.addTallies(flush([{ kind: 'disk', fromMs: NOON, counts: { free } }]))
    expect(await reads.listTallies({ span: 'day', kind: 'disk', ...ALWAYS })).toMatchObject([{ counts: { free: 500_000_000_001 } }])
  })

  test('counts that several callers add at the same time are all kept', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    const kinds = ['pushes', 'polls', 'endpoint:1', 'endpoint:2'] as const
    await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        writes.addTallies({
          by: `relay ${at}`,
          number: 1,
          additions: (at % 2 === 0 ? kinds : kinds.toReversed()).map((kind) => ({ kind, fromMs: NOON, counts: { [`n${at % 3}`]: 1 } })),
        }),
      ),
    )
    for (const kind of kinds)
      expect(await reads.listTallies({ span: 'day', kind, ...ALWAYS })).toMatchObject([{ counts: { n0: 7, n1: 7, n2: 6 } }])
  })

  test('a flush that is repeated because its answer was lost is added once', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    const lost = flush([pushes(NOON, { recorded: 2 }), pushes(NOON + HOUR_MS, { recorded: 1 })])
    for (const again of [lost, lost, { ...lost, by: 'another' }, flush([pushes(NOON, { recorded: 10 })])]) await writes.addTallies(again)
    expect(await reads.listTallies({ span: 'day', kind: 'pushes', ...ALWAYS })).toMatchObject([{ counts: { recorded: 16 } }])
  })

  /** Counts pushes in each hour of the last 8 days and on 400 earlier days. Stores an operator event and an action of `operatedDaysAgo` days ago. */
  async function openLongUsed(operatedDaysAgo: number) {
    const { writes, reads, pass } = await openStore(NOON, engine)
    const days = Array.from({ length: 400 }, (_, at) => pushes(NOON - (at + 8) * DAY_MS, { recorded: 1 }))
    const hours = Array.from({ length: 191 }, (_, at) => pushes(NOON - at * HOUR_MS, { recorded: 1 }))
    await writes.addTallies(flush([...days, ...hours]))
    const atMs = NOON - operatedDaysAgo * DAY_MS
    await writes.recordOperatorEvent({ event: 'credentials_refused' }, atMs)
    const by = { kind: 'app', name: 'admin', address: null } as const
    await writes.recordAction({ atMs, by, action: 'endpoint.tested', target: { kind: 'endpoint', id: '1' }, detail: {} })
    const prune = async (nowMs: number) => {
      let batches = 1
      while (!(await writes.prune({ nowMs })).isDone) batches++
      return batches
    }
    const firstOf = async (span: 'hour' | 'day') => {
      const tallies = await reads.listTallies({ span, kind: 'pushes', ...ALWAYS })
      return Math.round((NOON - (tallies[0]?.fromMs ?? 0)) / DAY_MS)
    }
    const operated = async () => [
      (await reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: 5 })).length,
      (await reads.listActions({ before: null, limit: 5 })).actions.length,
    ]
    return { count: (fromMs: number) => writes.addTallies(flush([pushes(fromMs, { recorded: 1 })])), prune, firstOf, operated, pass }
  }

  test('hourly counts are deleted after 8 days, daily counts and operator actions after 400', async () => {
    const { count, prune, firstOf, operated, pass } = await openLongUsed(399)
    expect([await prune(NOON), await firstOf('hour'), await firstOf('day'), await operated()]).toEqual([5, 8, 400, [1, 1]])
    for (const days of [1, 2]) {
      // A clock that went ahead while no time passed would be doubted.
      pass(DAY_MS)
      await count(NOON + days * DAY_MS)
      await prune(NOON + days * DAY_MS)
    }
    expect([await firstOf('day'), await operated()]).toEqual([398, [0, 0]])
  })

  test.each([8, 400])('a clock that is %i days ahead for a while causes no deletion of needed counts', async (days) => {
    const { count, prune, firstOf, operated } = await openLongUsed(395)
    await prune(NOON)
    for (const hour of [0, 1]) {
      await count(NOON + days * DAY_MS + hour * HOUR_MS)
      await prune(NOON + days * DAY_MS + hour * HOUR_MS)
    }
    await count(NOON)
    await prune(NOON)
    expect([await firstOf('hour'), await firstOf('day'), await operated()]).toEqual([8, 400, [1, 1]])
  })
})

import { describe, expect, test } from 'vitest'
import { type Counts, spanStart, type TallyAddition } from '../../../src/domain/admin/tally.ts'
import { engines } from '../../support/engines.ts'
import { openStore } from '../../support/write-side.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOON = Date.UTC(2026, 2, 1, 12)

const pushes = (fromMs: number, counts: Counts): TallyAddition => ({ kind: 'pushes', fromMs, counts })
const ALWAYS = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }

describe.each(engines)('tallies on $name', (engine) => {
  test('counts are added to those of their hour and of their day', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    await writes.addTallies([pushes(NOON, { recorded: 2, duplicate: 1 }), pushes(NOON + HOUR_MS, { recorded: 5 })])
    await writes.addTallies([pushes(NOON, { recorded: 3, 'odd "name\' ?': 1 })])
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

  test('of free bytes the fewest stay', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    for (const free of [700_000_000_000, 500_000_000_001, 600_000_000_000])
      await writes.addTallies([{ kind: 'disk', fromMs: NOON, counts: { free } }])
    expect(await reads.listTallies({ span: 'day', kind: 'disk', ...ALWAYS })).toMatchObject([{ counts: { free: 500_000_000_001 } }])
  })

  test('those that add at the same time lose nothing of each other', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    const kinds = ['pushes', 'polls', 'endpoint:1', 'endpoint:2'] as const
    await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        writes.addTallies(
          (at % 2 === 0 ? kinds : kinds.toReversed()).map((kind) => ({ kind, fromMs: NOON, counts: { [`n${at % 3}`]: 1 } })),
        ),
      ),
    )
    for (const kind of kinds)
      expect(await reads.listTallies({ span: 'day', kind, ...ALWAYS })).toMatchObject([{ counts: { n0: 7, n1: 7, n2: 6 } }])
  })

  test('hours go after 8 days and days after 400, a batch at a time', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    for (const days of [401, 399, 9, 7, 0]) await writes.addTallies([pushes(NOON - days * DAY_MS, { recorded: 1 })])
    const prune = () => writes.pruneTallies({ nowMs: NOON, limit: 2 })
    expect([await prune(), await prune(), await prune()]).toEqual([{ isDone: false }, { isDone: false }, { isDone: true }])
    const left = async (span: 'hour' | 'day') =>
      (await reads.listTallies({ span, kind: 'pushes', ...ALWAYS })).map(({ fromMs }) => Math.round((NOON - fromMs) / DAY_MS))
    expect([await left('hour'), await left('day')]).toEqual([
      [7, 0],
      [400, 10, 8, 1],
    ])
  })
})

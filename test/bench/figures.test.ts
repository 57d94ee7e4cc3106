import { expect, test } from 'vitest'
import { figure, figuresTable, judge } from '../../bench/figures.ts'
import { median, percentiles } from '../../bench/load/percentiles.ts'
import { parseSettings } from '../../bench/settings.ts'

test('a figure is the median of its rounds, and is compared with its bounds', () => {
  const rate = (rounds: readonly number[]) => figure('rate', rounds, { unit: 'x', better: 'higher', must: 0.4, aim: 0.55 })
  expect(rate([0.1, 0.5, 9]).value).toBe(0.5)
  expect([[0.39], [0.4], [0.55]].map((rounds) => judge(rate(rounds)))).toEqual(['MISS', 'ok', 'aim'])
  const p99 = (value: number) => judge(figure('p99', [value], { unit: 'x', better: 'lower', must: 4, aim: 2 }))
  expect([4.1, 4, 2].map(p99)).toEqual(['MISS', 'ok', 'aim'])
  expect(judge(figure('reported', [1], { unit: 'x', better: 'higher' }))).toBe('')
})

test('a figure that could not be measured counts as a miss', () => {
  expect(judge(figure('rate', [Number.NaN], { unit: 'x', better: 'higher', must: 0.4 }))).toBe('MISS')
  expect(judge(figure('time', [], { unit: 's', better: 'lower', must: 2 }))).toBe('MISS')
})

test('the table of figures is aligned, and shows unit, spread and bounds', () => {
  const bounds = { unit: 's', better: 'lower', must: 2, aim: 0.5 } as const
  const table = figuresTable([figure('kill -9 to ready', [1.234], bounds), figure('stop', [0.4, 120.3, 0.2], bounds)])
  expect(table.split('\n')).toEqual([
    'figure              value        rounds    must       aim',
    '----------------  -------  ------------  ------  --------  ---',
    'kill -9 to ready   1.23 s                <= 2 s  <= 0.5 s   ok',
    'stop              0.400 s  0.200 to 120  <= 2 s  <= 0.5 s  aim',
  ])
})

test('a percentile is one of the measured values', () => {
  const hundred = Float64Array.from({ length: 100 }, (_, at) => 100 - at)
  expect(percentiles(hundred)).toEqual({ p50: 50, p90: 90, p99: 99, max: 100 })
  expect(percentiles(Float64Array.of(7))).toEqual({ p50: 7, p90: 7, p99: 7, max: 7 })
  expect(median([4, 1, 3, 2])).toBe(2.5)
})

test('the arguments name the suites, and --rounds refuses text that is not a number', () => {
  expect(parseSettings(['ingest', '--rounds', '7', '--seconds', '2'])).toMatchObject({ suites: ['ingest'], rounds: 7, durationMs: 2000 })
  expect(() => parseSettings(['--rounds', 'many'])).toThrow('--rounds must be a number above 0')
})

import { expect, test } from 'vitest'
import { spellText, wholeSpell } from '../../../../src/console/problems/explain-pushes.ts'
import {
  addComebacks,
  addRefused,
  hasAllComeAgain,
  joinRefused,
  type RefusedPushes,
  refusedCauseOf,
  staleRefused,
} from '../../../../src/console/refused/refused-pushes.rules.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'

const spell = (fromMs: number, untilMs: number, count: number, cause: RefusedPushes['cause'] = 'not_stored') => ({
  cause,
  count,
  fromMs,
  untilMs,
})
const NONE = { pushes: 0, again: 0 }
const added = (at: readonly (readonly [atMs: number, count: number])[], cause: RefusedPushes['cause'] = 'not_stored') =>
  at.reduce<readonly RefusedPushes[]>(
    (spells, [atMs, count]) => addRefused(spells, { cause, count }, { atMs, endedBeforeMs: Number.NEGATIVE_INFINITY }),
    [],
  )

test('pushes refused without a pause of an hour are one spell, from the first to the last', () => {
  const times = [
    [NOON, 300],
    [NOON + 6 * MINUTE_MS, 55],
    [NOON + 3 * HOUR_MS, 2],
  ] as const
  expect(added(times)).toMatchObject([spell(NOON, NOON + 6 * MINUTE_MS, 355), spell(NOON + 3 * HOUR_MS, NOON + 3 * HOUR_MS, 2)])
})

test('a spell is shown for a day after its last push', () => {
  const spells = added([[NOON, 3]])
  expect(joinRefused(spells, NOON + DAY_MS - 1)).toHaveLength(1)
  expect(joinRefused(spells, NOON + DAY_MS)).toEqual([])
  expect(addRefused(spells, { cause: 'path', count: 1 }, { atMs: NOON + DAY_MS, endedBeforeMs: 0 })).toEqual([
    spell(NOON + DAY_MS, NOON + DAY_MS, 1, 'path'),
  ])
})

test('a clock that is put back begins a new spell, and hides spells that are a day ahead', () => {
  const back = NOON - 2 * HOUR_MS
  const spells = added([
    [NOON, 3],
    [back, 1],
    [back + MINUTE_MS, 1],
  ])
  expect(spells).toMatchObject([spell(NOON, NOON, 3), spell(back, back + MINUTE_MS, 2)])
  expect(joinRefused(spells, back + MINUTE_MS)).toHaveLength(2)
  expect(joinRefused(spells, NOON - DAY_MS)).toMatchObject([spell(back, back + MINUTE_MS, 2)])
})

test('stored spells are forgotten after a day, and the oldest if there are too many', () => {
  const stored = Array.from({ length: 1003 }, (_, nth) => ({ ...spell(NOON, NOON + nth, 1), process: `process${nth}` }))
  expect(staleRefused(stored, NOON + HOUR_MS).map(({ untilMs }) => untilMs - NOON)).toEqual([0, 1, 2])
  expect(staleRefused(stored.slice(0, 3), NOON + DAY_MS + 1).map(({ untilMs }) => untilMs - NOON)).toEqual([0, 1])
  expect(staleRefused(stored.slice(0, 1), NOON - DAY_MS)).toHaveLength(1)
})

test('the spells of several replicas at about the same time are one, and the newest come first', () => {
  const one = spell(NOON, NOON + 10 * MINUTE_MS, 5)
  const other = spell(NOON + MINUTE_MS, NOON + 20 * MINUTE_MS, 7)
  const path = spell(NOON + HOUR_MS, NOON + HOUR_MS, 1, 'path')
  const later = spell(NOON + 5 * HOUR_MS, NOON + 5 * HOUR_MS, 2)
  expect(joinRefused([later, one, path, other], NOON + 6 * HOUR_MS)).toEqual([later, path, spell(NOON, NOON + 20 * MINUTE_MS, 12)])
})

test('outcomes that leave no push missing are not refusals', () => {
  const outcomes = ['recorded', 'duplicate', 'quarantined', 'expired', 'check', 'wrong_path_unsigned', 'too_many_requests']
  expect(outcomes.map(refusedCauseOf)).toEqual(outcomes.map(() => null))
  expect(['storage_unavailable', 'overloaded', 'signature_invalid', 'wrong_path', 'body_too_large'].map(refusedCauseOf)).toEqual([
    'not_stored',
    'overload',
    'signature',
    'path',
    'size',
  ])
})

test('pushes that come again are counted for the oldest spell that still misses pushes', () => {
  const two = added([
    [NOON, 3],
    [NOON + 2 * HOUR_MS, 5],
  ])
  expect(two.map(({ comeback }) => comeback)).toEqual([NONE, NONE])
  expect(hasAllComeAgain(two)).toBe(false)
  const [early, late] = [addComebacks(two.slice(0, 1), { pushes: 2, again: 0 }), two.slice(1)]
  const both = addComebacks([...early, ...late], { pushes: 3, again: 1 })
  expect(both.map(({ comeback }) => comeback)).toEqual([
    { pushes: 2, again: 1 },
    { pushes: 3, again: 0 },
  ])
  const back = addComebacks(both, { pushes: 0, again: 4 })
  expect([hasAllComeAgain(both), hasAllComeAgain(back), hasAllComeAgain([])]).toEqual([false, true, true])
  expect(joinRefused(back, NOON + 3 * HOUR_MS).map(({ comeback }) => comeback?.again)).toEqual([3, 2])
  // A spell that a killed process left may have no count of the pushes that came again.
  expect(hasAllComeAgain([...back, spell(NOON, NOON, 1)])).toBe(false)
})

test('refusals that came again within an hour are one spell that says how often, and when last', () => {
  const parts = [
    spell(NOON, NOON + 1000, 5),
    spell(NOON + MINUTE_MS, NOON + 2 * MINUTE_MS, 7),
    spell(NOON + 5 * MINUTE_MS, NOON + 6 * MINUTE_MS, 1),
  ]
  const [whole] = joinRefused(parts, NOON + HOUR_MS)
  expect(whole).toEqual({ ...spell(NOON, NOON + 6 * MINUTE_MS, 13), parts: { count: 3, lastFromMs: NOON + 5 * MINUTE_MS } })
  expect(whole === undefined ? '' : spellText(whole)).toMatch(
    /^13 requests on 3 occasions between \S+T12:00:00Z and \S+T12:06:00Z \(the last one from \S+T12:05:00Z\)$/,
  )
  // A stranger who is refused at several replicas is no trouble that comes again.
  expect(
    joinRefused(
      parts.map((one) => ({ ...one, cause: 'signature' as const })),
      NOON + HOUR_MS,
    )[0]?.parts,
  ).toBeUndefined()
})

test('several spells told as one say on how many occasions pushes were refused', () => {
  const twice = { ...spell(NOON, NOON + 6 * MINUTE_MS, 13), parts: { count: 2, lastFromMs: NOON + 5 * MINUTE_MS } }
  const later = spell(NOON + 3 * HOUR_MS, NOON + 3 * HOUR_MS + MINUTE_MS, 7)
  expect(spellText(wholeSpell([later, twice]))).toMatch(
    /^20 requests on 3 occasions between \S+T12:00:00Z and \S+T15:01:00Z \(the last one from \S+T15:00:00Z\)$/,
  )
  expect(spellText(wholeSpell([twice]))).toMatch(/^13 requests on 2 occasions .* \(the last one from \S+T12:05:00Z\)$/)
  expect(spellText(wholeSpell([later]))).toMatch(/^7 requests from \S+T15:00:00Z until \S+T15:01:00Z$/)
})

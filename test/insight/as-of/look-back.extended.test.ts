import { describe, expect, test } from 'vitest'
import { liveThroughMonth, openLookBack } from '../../support/insight/simulated-month.ts'
import { runsOn } from '../../support/runner/long-form.ts'
import { engines } from '../../support/store/engines.ts'

describe.each(engines)('what was known, on $name', (engine) => {
  test('11.1: a month later the relay tells what it answered at each time, or that parcels were joined since', async () => {
    const counts = { exact: 0, approximate: 0 }
    for (let seed = 1; seed <= runsOn(engine, 16, 4); seed++) {
      const store = await openLookBack(engine)
      const { identifiers, said, joinedMs } = await liveThroughMonth(store, seed, 60)
      for (const identifier of identifiers) {
        for (const { atMs, answers } of said) {
          const found = await store.answersAt(identifier, atMs)
          const isOwed = atMs < (joinedMs.get(identifier) ?? 0)
          expect([seed, identifier, atMs, found.approximate]).toEqual([seed, identifier, atMs, isOwed ? ['join'] : []])
          if (!isOwed) expect([seed, identifier, atMs, found.answers]).toEqual([seed, identifier, atMs, answers.get(identifier)])
          counts[isOwed ? 'approximate' : 'exact'] += 1
        }
      }
    }
    expect(counts.exact).toBeGreaterThan(counts.approximate)
    expect(counts.approximate).toBeGreaterThan(0)
  })
})

import { expect, test } from 'vitest'
import { createRoundFailures } from '../../../../src/core/flow/delivery/dispatching/dispatch-rounds.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

function open() {
  const { log, lines } = createLogBook()
  const lease = new AbortController()
  let term = 0
  let nowMs = 100
  const held = { term: () => term, signal: () => lease.signal }
  const failures = createRoundFailures({ log, clock: { now: () => nowMs++, monotonic: () => 0 }, held })
  const shown = () => lines.filter(({ level }) => level !== 'debug').map(({ level, message }) => [level, message])
  const lose = () => {
    term += 1
  }
  /** Runs a round that calls `meanwhile` and then fails. */
  const fail = (results: number, meanwhile = () => {}) =>
    expect(
      failures.run(results, async () => {
        meanwhile()
        throw new Error('the database is away')
      }),
    ).rejects.toThrow('the database is away')
  return { failures, lease, lose, fail, shown }
}

test('failed rounds log an error once, and say if they had results to save', async () => {
  const { fail, shown } = open()
  await fail(3)
  await fail(3)
  await fail(0)
  expect(shown()).toEqual([
    ['error', 'the results of deliveries could not be written down; retrying'],
    ['error', 'the next deliveries could not be read; retrying'],
  ])
})

test('since when rounds fail because of the store is known until one succeeds', async () => {
  const { failures, fail, lose } = open()
  await fail(1, lose)
  expect(failures.sinceMs()).toBe(null)
  await fail(1)
  await fail(0)
  expect(failures.sinceMs()).toBe(100)
  await failures.run(1, async () => 'done')
  expect(failures.sinceMs()).toBe(null)
})

test('a round that fails because the lease expired logs one warning', async () => {
  const { failures, lease, lose, fail, shown } = open()
  const warning = ['warn', expect.stringContaining('a replica that takes over sends these deliveries again')]
  await fail(3, lose)
  lease.abort()
  await fail(3)
  await fail(0)
  expect(shown()).toEqual([warning])
  expect(await failures.run(3, async () => 'done')).toBe('done')
  await fail(1)
  expect(shown()).toEqual([warning, warning])
})

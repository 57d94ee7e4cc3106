import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createServerClock } from '../../../src/server/replicas/replicas.ts'
import { NOON } from '../../support/runner/constants.ts'

/** Opens a server whose clock is `aheadMs` ahead of this machine's monotonic clock. The network takes time in both directions. */
function openServer(aheadMs: number) {
  let atMs = 1000.25
  let ahead = aheadMs
  return {
    monotonic: () => atMs,
    pass(ms: number) {
      atMs += ms
    },
    step(ms: number) {
      ahead += ms
    },
    time: () => atMs + ahead,
    ask(thereMs: number, backMs: number) {
      const askedMs = atMs
      atMs += thereMs
      const serverMs = Math.floor(atMs + ahead)
      atMs += backMs
      return { serverMs, askedMs, heardMs: atMs }
    },
  }
}

const trip = fc.record({ thereMs: fc.double({ min: 0, max: 1500, noNaN: true }), backMs: fc.double({ min: 0, max: 1500, noNaN: true }) })

test('the error of the time is at most the duration of the quickest answer', () => {
  fc.assert(
    fc.property(fc.array(trip, { minLength: 1, maxLength: 20 }), fc.double({ min: 0, max: 5000, noNaN: true }), (trips, restMs) => {
      const server = openServer(NOON)
      let clock: ReturnType<typeof createServerClock> | null = null
      let quickestMs = Number.POSITIVE_INFINITY
      for (const { thereMs, backMs } of trips) {
        const sample = server.ask(thereMs, backMs)
        clock ??= createServerClock(server.monotonic, sample)
        clock.adjust(sample)
        quickestMs = Math.min(quickestMs, thereMs + backMs)
        server.pass(restMs)
        expect(Math.abs(clock.now() - server.time())).toBeLessThanOrEqual(quickestMs + 2)
      }
    }),
  )
})

test('a slower answer that is consistent with the known time does not change it', () => {
  const server = openServer(NOON)
  const clock = createServerClock(server.monotonic, server.ask(1, 1))
  const known = clock.now() - server.monotonic()
  for (const [thereMs, backMs] of [
    [900, 2],
    [2, 900],
    [60_000, 3],
    [400, 400],
  ] as const) {
    clock.adjust(server.ask(thereMs, backMs))
    expect(Math.abs(clock.now() - server.monotonic() - known)).toBeLessThanOrEqual(1)
  }
})

test.each([600_000, -600_000, 5000, -5000])('after the server’s clock was set by %i ms, the next answer corrects the time', (stepMs) => {
  const server = openServer(NOON)
  const clock = createServerClock(server.monotonic, server.ask(1, 1))
  server.step(stepMs)
  clock.adjust(server.ask(2, 3))
  expect(Math.abs(clock.now() - server.time())).toBeLessThanOrEqual(6)
})

test('between answers the time advances by the monotonic clock, in whole milliseconds', () => {
  const server = openServer(NOON)
  const clock = createServerClock(server.monotonic, server.ask(0, 0))
  const before = clock.now()
  server.pass(12_345.5)
  expect(clock.now() - before).toBeGreaterThanOrEqual(12_345)
  expect(clock.now() - before).toBeLessThanOrEqual(12_346)
  expect(Number.isInteger(clock.now())).toBe(true)
  expect(clock.monotonic()).toBe(server.monotonic())
})

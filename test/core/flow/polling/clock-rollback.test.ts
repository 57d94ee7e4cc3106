import { expect, test } from 'vitest'
import { createClockRollback } from '../../../../src/core/flow/polling/poller.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

function start() {
  const world = { wallMs: NOON, monotonicMs: 0.25, isDown: false }
  const shifts: object[] = []
  const follow = createClockRollback(
    {
      write: {
        async shiftSchedule({ byMs, sinceMs, nowMs, afterParcelId }) {
          if (world.isDown) throw new Error('the store is down')
          shifts.push({ byMs, sinceMs, nowMs, afterParcelId })
          return afterParcelId === 0 ? 500 : null
        },
      },
      clock: { now: () => world.wallMs, monotonic: () => world.monotonicMs },
      log: createLogBook().log,
      onShifted: () => undefined,
    },
    null,
  )
  const pass = (ms: number) => {
    world.wallMs += ms
    world.monotonicMs += ms
  }
  return { world, shifts, follow, pass }
}

test('P13: the times of a shift of the schedule are those of the clock after it was put back', async () => {
  const { world, shifts, follow, pass } = start()
  pass(4000)
  world.wallMs -= HOUR_MS
  await follow()
  const sinceMs = NOON - HOUR_MS
  expect(shifts).toEqual([0, 500].map((afterParcelId) => ({ byMs: HOUR_MS, sinceMs, nowMs: sinceMs + 4000, afterParcelId })))
})

test('P13: a shift that is retried leaves out all polls planned since the clock was put back', async () => {
  const { world, shifts, follow, pass } = start()
  world.wallMs -= HOUR_MS
  world.isDown = true
  await expect(follow()).rejects.toThrow('the store is down')
  world.isDown = false
  pass(60_000)
  await follow()
  const sinceMs = NOON - HOUR_MS
  expect(shifts[0]).toEqual({ byMs: HOUR_MS, sinceMs, nowMs: sinceMs + 60_000, afterParcelId: 0 })
})

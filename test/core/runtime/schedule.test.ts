import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { startSchedule } from '../../../src/core/runtime/schedule.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../../support/runner/constants.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** Opens a schedule on a clock that the test moves. `pass` also runs the timers. `jump` only moves the clock, as if somebody set it. */
function openSchedule(expression: string) {
  let nowMs = NOON
  const wokenAt: string[] = []
  const schedule = startSchedule(
    expression,
    () => wokenAt.push(new Date(nowMs).toISOString().slice(0, 19)),
    () => nowMs,
  )
  onTestFinished(() => schedule.stop())
  return {
    wokenAt,
    schedule,
    pass(ms: number) {
      for (let left = ms; left > 0; left -= 250) {
        nowMs += 250
        vi.advanceTimersByTime(250)
      }
    },
    jump(ms: number) {
      nowMs += ms
    },
  }
}

test('a schedule wakes once at each time of its expression, in UTC', () => {
  const { wokenAt, pass } = openSchedule('*/15 * * * *')
  pass(HOUR_MS)
  expect(wokenAt).toEqual(['12:15', '12:30', '12:45', '13:00'].map((time) => `2026-03-01T${time}:00`))
})

test('a schedule wakes every second if its expression says so', () => {
  const { wokenAt, pass } = openSchedule('* * * * * *')
  pass(20_000)
  expect(wokenAt).toHaveLength(20)
})

test('P13: a clock put back delays the schedule by at most its interval', () => {
  for (const backMs of [HOUR_MS, 10 * 365 * 24 * HOUR_MS]) {
    const { wokenAt, pass, jump } = openSchedule('* * * * *')
    pass(2 * MINUTE_MS)
    jump(-backMs)
    pass(2 * MINUTE_MS)
    expect(wokenAt).toHaveLength(4)
  }
})

test('P13: a schedule wakes once after the clock is put forward by ten years', () => {
  const { wokenAt, pass, jump } = openSchedule('* * * * *')
  pass(MINUTE_MS)
  jump(10 * 365 * 24 * HOUR_MS)
  pass(MINUTE_MS)
  expect(wokenAt.map((time) => time.slice(0, 10))).toEqual(['2026-03-01', '2036-02-27', '2036-02-27'])
})

test('a time that passed while the process was blocked is not missed', () => {
  const { wokenAt, pass, jump } = openSchedule('*/5 * * * *')
  pass(5 * MINUTE_MS - 2000)
  jump(10_000)
  pass(2000)
  expect(wokenAt).toEqual(['2026-03-01T12:05:09'])
})

test('a schedule does not wake after it was stopped', async () => {
  const { wokenAt, pass, schedule } = openSchedule('* * * * * *')
  pass(1000)
  await schedule.stop()
  pass(5000)
  expect(wokenAt).toHaveLength(1)
})

import { expect, test } from 'vitest'
import { createDeadlineList, type DeadlineEntry } from '../../../src/core/outbound/sender.ts'

const TIMEOUT_MS = 1000

/** Makes a list of deadlines whose timers fire when the test says so. Records the names of the exchanges that it ends. */
function open() {
  const timers: { readonly atMs: number; readonly run: () => void }[] = []
  let nowMs = 0
  const deadlines = createDeadlineList(TIMEOUT_MS, (delayMs, run) => {
    const timer = { atMs: nowMs + delayMs, run }
    timers.push(timer)
    return () => void timers.splice(timers.indexOf(timer), 1)
  })
  const ended: string[] = []
  const begin = (name: string): DeadlineEntry => {
    const one = deadlines.add(() => {
      ended.push(name)
      deadlines.remove(one)
    }, nowMs)
    return one
  }
  const passTo = (atMs: number) => {
    nowMs = atMs
    for (const timer of timers.filter((one) => one.atMs <= atMs)) {
      timers.splice(timers.indexOf(timer), 1)
      timer.run()
    }
  }
  return { deadlines, begin, passTo, ended, timers }
}

test('each exchange ends when its own time is over, with one timer for all', () => {
  const { begin, passTo, ended, timers } = open()
  begin('first')
  passTo(400)
  begin('second')
  expect(timers).toHaveLength(1)
  passTo(999)
  expect(ended).toEqual([])
  passTo(1000)
  expect(ended).toEqual(['first'])
  passTo(1399)
  expect([ended, timers.length]).toEqual([['first'], 1])
  passTo(1400)
  expect([ended, timers.length]).toEqual([['first', 'second'], 0])
})

test('an exchange that was removed is not ended, and removing the last one stops the timer', () => {
  const { deadlines, begin, passTo, ended, timers } = open()
  const [first, , third] = ['first', 'second', 'third', 'fourth'].map(begin)
  for (const one of [first, third]) if (one !== undefined) deadlines.remove(one)
  expect(deadlines.all()).toHaveLength(2)
  passTo(1000)
  expect(ended).toEqual(['second', 'fourth'])
  const last = begin('last')
  deadlines.remove(last)
  expect([deadlines.all().length, timers.length]).toEqual([0, 0])
})

test('onEmpty reports when no exchange is left, and immediately if there is none', () => {
  const { deadlines, begin } = open()
  let told = 0
  deadlines.onEmpty(() => void told++)
  expect(told).toBe(1)
  const one = begin('one')
  expect(told).toBe(1)
  deadlines.remove(one)
  expect(told).toBe(2)
})

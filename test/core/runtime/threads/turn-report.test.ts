import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createTurnReport } from '../../../../src/core/runtime/threads/thread.ts'

function openReport() {
  let happened: string[] = []
  const report = createTurnReport(() => {
    const all = happened
    happened = []
    return all
  })
  return {
    ...report,
    happens(what: string, { isAwaited = true } = {}) {
      happened.push(what)
      report.changed(isAwaited)
    },
  }
}

test('the events of one turn are reported once, at its end', async () => {
  const report = openReport()
  const asked = report.next()
  report.happens('a')
  report.happens('b')
  expect(await asked).toEqual(['a', 'b'])
})

test('events that come while no caller waits are all reported to the next caller, once', async () => {
  const report = openReport()
  report.happens('a')
  await nextTurn()
  report.happens('b')
  expect(await report.next()).toEqual(['a', 'b'])
  const next = report.next()
  await report.flush()
  report.happens('c')
  expect(await next).toEqual(['c'])
})

test('flush reports before the turn ends', async () => {
  const report = openReport()
  const order: string[] = []
  void report.next().then(([what = '']) => order.push(what))
  report.happens('a')
  void report.flush()
  await Promise.resolve().then(() => order.push('after'))
  expect(order).toEqual(['a', 'after'])
})

test('a flush while no caller waits ends when the next caller has been told', async () => {
  const report = openReport()
  const order: string[] = []
  report.happens('a', { isAwaited: false })
  const flushed = report.flush().then(() => order.push('flushed'))
  await nextTurn()
  expect(order).toEqual([])
  void report.next().then(([what = '']) => order.push(what))
  await flushed
  expect(order).toEqual(['a', 'flushed'])
  await report.flush()
})

test('events that no caller waits for are reported after 20 ms, or with the next awaited event', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const report = openReport()
  const reports: string[][] = []
  const ask = () => void report.next().then((next) => reports.push(next))
  ask()
  report.happens('a', { isAwaited: false })
  vi.advanceTimersByTime(19)
  await nextTurn()
  report.happens('b', { isAwaited: false })
  expect(reports).toEqual([])
  vi.advanceTimersByTime(1)
  await nextTurn()
  expect(reports).toEqual([['a', 'b']])
  ask()
  report.happens('c', { isAwaited: false })
  report.happens('d')
  await nextTurn()
  expect(reports).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ])
  expect(vi.getTimerCount()).toBe(0)
})

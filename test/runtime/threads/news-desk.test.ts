import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createNewsDesk } from '../../../src/runtime/threads/news-desk.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

function openDesk() {
  let happened: string[] = []
  const desk = createNewsDesk(() => {
    const news = happened
    happened = []
    return news
  })
  return {
    ...desk,
    happens(what: string, { urgent = false } = {}) {
      happened.push(what)
      desk.stir(urgent)
    },
  }
}

test('what happens in one turn is told at its end, at once', async () => {
  const desk = openDesk()
  const heard = desk.next()
  desk.happens('a')
  desk.happens('b')
  expect(await heard).toEqual(['a', 'b'])
})

test('what happens while nobody asks is told whole to the next who does, and once', async () => {
  const desk = openDesk()
  desk.happens('a')
  await nextTurn()
  desk.happens('b')
  expect(await desk.next()).toEqual(['a', 'b'])
  const next = desk.next()
  desk.give()
  await nextTurn()
  desk.happens('c', { urgent: true })
  expect(await next).toEqual(['c'])
})

test('it is told before the end of the turn when that is wished', async () => {
  const desk = openDesk()
  const order: string[] = []
  void desk.next().then(([what = '']) => order.push(what))
  desk.happens('a')
  desk.give()
  await Promise.resolve().then(() => order.push('after'))
  expect(order).toEqual(['a', 'after'])
})

test('after a telling, what is not urgent waits for the end of the rest, and what is brings it along', async () => {
  const desk = openDesk()
  const heard: string[][] = []
  const hear = () => void desk.next().then((news) => heard.push(news))
  const turn = async (what: string, urgent: boolean) => {
    hear()
    desk.happens(what, { urgent })
    await nextTurn()
  }
  await turn('a', false)
  hear()
  desk.happens('b')
  await nextTurn()
  expect(heard).toEqual([['a']])
  vi.advanceTimersByTime(20)
  await nextTurn()
  expect(heard).toEqual([['a'], ['b']])
  hear()
  desk.happens('c')
  desk.happens('d', { urgent: true })
  await nextTurn()
  expect(heard).toEqual([['a'], ['b'], ['c', 'd']])
})

import { expect, test } from 'vitest'
import type { DuePoll } from '../../../../src/core/domain/polling/poll.ts'
import { createPoller, createPollsUnderWay } from '../../../../src/core/flow/polling/poller.ts'
import type { PollEnd } from '../../../../src/core/flow/polling/refresh.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

const CONCURRENCY = 4

/** Opens a poller with this many due parcels. A poll ends when the promise of `ends` resolves, or at once. */
function openPoller(parcels: number, ends: (parcelId: number) => Promise<PollEnd> | PollEnd) {
  const waiting = Array.from({ length: parcels }, (_, at): DuePoll => ({ parcelId: at + 1, identifiers: [`PD${at}`] }))
  const asked: number[] = []
  const passed: (readonly number[])[] = []
  let inFlight = 0
  let most = 0
  const { log, lines } = createLogBook()
  const pass = createPoller(
    {
      write: {
        async claimDuePolls({ limit, underWay = [] }) {
          passed.push(underWay)
          return waiting.splice(0, limit)
        },
        settleMissedPushes: async () => [],
      },
      refresh: {
        async poll({ parcelId }) {
          asked.push(parcelId)
          inFlight += 1
          most = Math.max(most, inFlight)
          try {
            return await ends(parcelId)
          } finally {
            inFlight -= 1
          }
        },
      },
      underWay: createPollsUnderWay(),
      meter: { missedPush: () => undefined },
      clock: { now: () => 0, monotonic: () => 0 },
      log,
      isQuiet: () => false,
    },
    { concurrency: CONCURRENCY },
  )
  return { pass, asked, passed, lines, inFlight: () => inFlight, most: () => most }
}

test('P2: a parcel whose answer hangs takes one slot and does not delay other parcels', async () => {
  const hanging = Promise.withResolvers<PollEnd>()
  const { pass, asked, most, inFlight } = openPoller(40, (parcelId) => (parcelId === 2 ? hanging.promise : 'recorded'))
  for (let passes = 0; asked.length < 40 && passes < 60; passes++) expect(await pass()).toBe('busy')
  expect([asked.length, most()]).toEqual([40, CONCURRENCY])
  hanging.resolve('recorded')
  expect([await pass(), inFlight()]).toEqual(['idle', 0])
})

test('after the carrier could not be asked, nothing more is claimed until the next wake', async () => {
  const { pass, asked, inFlight } = openPoller(40, (parcelId) => (parcelId === 3 ? 'unavailable' : 'recorded'))
  let last = await pass()
  while (last === 'busy') last = await pass()
  expect(asked.length).toBeLessThan(3 * CONCURRENCY)
  expect(inFlight()).toBe(0)
  while ((await pass()) === 'busy');
  expect(asked).toHaveLength(40)
})

test('a poll that fails unexpectedly is logged, and the poller pauses and continues', async () => {
  const { pass, asked, lines } = openPoller(9, (parcelId) => (parcelId === 1 ? Promise.reject(new Error('unforeseen')) : 'recorded'))
  while ((await pass()) === 'busy');
  while ((await pass()) === 'busy');
  expect([asked.length, lines.map(({ level }) => level)]).toEqual([9, ['error']])
})

test('a poll that an expired lease cuts off is no failure, and the next pass ends its claim', async () => {
  const { pass, passed, lines } = openPoller(3, (parcelId) => (parcelId === 2 ? 'lapsed' : 'recorded'))
  for (let passes = 0; passes < 3; passes++) expect(await pass()).toBe('idle')
  expect(passed).toEqual([[], [2], []])
  expect(lines).toEqual([])
})

import { expect, test } from 'vitest'
import type { DispatchRound, DispatchRoundReport } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import type { HeldEndpoints } from '../../../../src/core/flow/delivery/dispatching/dispatch-rounds.ts'
import { createDispatcher } from '../../../../src/core/flow/delivery/dispatching/dispatcher.ts'
import { allEndpoints } from '../../../support/relay/held-endpoints.ts'

const NOTHING: DispatchRoundReport = { claimed: [], overtaken: [], endpoints: [], notices: [], more: [], nextAtMs: null }

/** Opens a dispatcher without due deliveries, whose rounds last until the test ends them. */
function openDispatcher(held: HeldEndpoints = allEndpoints) {
  const rounds: { readonly round: DispatchRound; readonly end: (failure?: Error) => void }[] = []
  const wakes: (number | null)[] = []
  const dispatcher = createDispatcher(
    {
      held,
      write: {
        dispatchRound: (round) =>
          new Promise((resolve, reject) => {
            rounds.push({ round, end: (failure) => (failure === undefined ? resolve(NOTHING) : reject(failure)) })
          }),
      },
      sender: { post: () => undefined },
      signerOf: () => null,
      routeOf: () => ({}),
      clock: { now: () => 0, monotonic: () => 0 },
      random: () => 0.5,
      meter: { deliveryAttempted: () => undefined },
      log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
      wake: (atMs) => void wakes.push(atMs),
      yieldToIo: async () => undefined,
    },
    { relayId: 'relay', claimsMax: 100, perEndpoint: () => 2, claimsPerAttempt: 3 },
  )
  /** Calls `reviewed`. `isOver` tells whether it has resolved. */
  const ask = () => {
    let isOver = false
    void dispatcher.reviewed().then(() => {
      isOver = true
    })
    return { isOver: () => isOver }
  }
  return { dispatcher, rounds, wakes, ask }
}

/** Waits until all promises that can settle have settled. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('`reviewed` resolves after a round that began after the call', async () => {
  const { dispatcher, rounds, ask } = openDispatcher()
  const first = dispatcher.pass()
  const review = ask()
  rounds[0]?.end()
  await first
  await settled()
  expect(review.isOver()).toBe(false)
  const second = dispatcher.pass()
  rounds[1]?.end()
  await second
  await settled()
  expect([review.isOver(), rounds.length]).toEqual([true, 2])
})

test('`reviewed` resolves even if its round fails', async () => {
  const { dispatcher, rounds, ask } = openDispatcher()
  const review = ask()
  const pass = dispatcher.pass()
  rounds[0]?.end(new Error('the disk is full'))
  await pass
  await settled()
  expect(review.isOver()).toBe(true)
})

test('`reviewed` resolves after the last round if the relay stops', async () => {
  const { dispatcher, rounds, ask } = openDispatcher()
  const review = ask()
  const stopped = dispatcher.stop()
  await settled()
  rounds[0]?.end()
  await stopped
  await settled()
  expect([review.isOver(), rounds.map(({ round }) => round.claimsMax)]).toEqual([true, [0]])
})

test('a relay that delivers to no endpoint runs a round only after a change', async () => {
  const { dispatcher, rounds } = openDispatcher({ ...allEndpoints, endpoints: () => [] })
  await dispatcher.pass()
  dispatcher.look()
  await dispatcher.pass()
  expect(rounds).toHaveLength(0)
  dispatcher.review()
  const pass = dispatcher.pass()
  rounds[0]?.end()
  await pass
  dispatcher.look()
  await dispatcher.pass()
  expect(rounds.map(({ round }) => round.held)).toEqual([[]])
})

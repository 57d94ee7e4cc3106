import { expect, onTestFinished, test, vi } from 'vitest'
import { CLAIMS_PER_ATTEMPT } from '../../../../src/core/domain/delivery/delivery.ts'
import type { DispatchRoundReport } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { openDispatching } from '../../../../src/core/wiring/delivery/open-delivery.ts'
import { strictLog } from '../../../support/history/observed.ts'
import { allEndpoints } from '../../../support/relay/held-endpoints.ts'
import { NOON } from '../../../support/runner/constants.ts'

test('X1: a stop leaves no timer, even if a running round says when to continue', async () => {
  vi.useFakeTimers({ now: NOON, toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const asked = Promise.withResolvers<void>()
  const round = Promise.withResolvers<DispatchRoundReport>()
  const dispatching = openDispatching(
    {
      held: allEndpoints,
      write: {
        dispatchRound() {
          asked.resolve()
          return round.promise
        },
      },
      sender: { post: () => undefined },
      signerOf: () => null,
      routeOf: () => ({}),
      clock: { now: Date.now, monotonic: Date.now },
      meter: { deliveryAttempted: () => undefined },
      log: { ...strictLog, debug: () => undefined, info: () => undefined, warn: () => undefined },
      yieldToIo: async () => undefined,
    },
    { relayId: 'relay', claimsMax: 100, perEndpoint: () => 2, claimsPerAttempt: CLAIMS_PER_ATTEMPT },
  )
  dispatching.start()
  dispatching.wake()
  await asked.promise
  const stopped = dispatching.stop(async () => undefined)
  round.resolve({ endpoints: [], notices: [], claimed: [], overtaken: [], more: [], nextAtMs: NOON + 300_000 })
  await stopped
  expect(vi.getTimerCount()).toBe(0)
})

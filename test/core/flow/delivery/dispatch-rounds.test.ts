import { expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { createDispatchRounds, createRoundTimes } from '../../../../src/core/flow/delivery/dispatching/dispatch-rounds.ts'
import { createEndpointQueues, createEndpointRates } from '../../../../src/core/flow/delivery/dispatching/endpoint-queues.ts'
import { createEndpointLog } from '../../../../src/core/flow/delivery/dispatching/send-delivery.ts'
import { allEndpoints } from '../../../support/relay/held-endpoints.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

const claim = (deliveryId: number): ClaimedDelivery => ({
  deliveryId,
  endpointId: '1',
  parcelId: deliveryId,
  sequence: deliveryId,
  plannedAtMs: 0,
  attempts: 0,
  spared: 0,
  limited: 0,
  firstFailedAtMs: null,
  previousSequence: 0,
  body: null,
  order: null,
})

test('deliveries to an endpoint are still claimed if its 410 could not be stored', async () => {
  let term = 0
  const clock = { now: () => 0, monotonic: () => 0 }
  const { log } = createLogBook()
  const queues = createEndpointQueues({ perEndpoint: () => 2, claimsPerAttempt: 3, delivers: () => true, now: clock.now })
  const rounds = createDispatchRounds({
    write: { dispatchRound: () => Promise.reject(new Error('the database is away')) },
    clock,
    log,
    queues,
    rates: createEndpointRates(clock),
    endpointLog: createEndpointLog({ clock, log }),
    times: createRoundTimes({ clock, wake: () => undefined }),
    held: { ...allEndpoints, term: () => term },
  })
  const queue = queues.of('1')
  queues.claimed([claim(1)])
  expect(queue.takeNext()).toMatchObject({ deliveryId: 1 })
  const result = { kind: 'rejected', status: 410, retryAfterMs: null, durationMs: 1, answerStart: new Uint8Array() } as const
  queue.ended(1, result)
  rounds.add({ ...claim(1), result, atMs: 0, random: 0 })
  queues.claimed([claim(2)])
  expect(queue.takeNext()).toBeNull()
  await rounds.run(10)
  term += 1
  await rounds.run(10)
  queues.claimed([claim(3)])
  expect(queue.takeNext()).toMatchObject({ deliveryId: 3 })
})

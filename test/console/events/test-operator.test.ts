import { expect, test } from 'vitest'
import { createTestOperator } from '../../../src/console/events/operator.routes.ts'
import type { Actor, OperatorAction } from '../../../src/core/domain/admin/operator-action.ts'
import { createDeliverySigner } from '../../../src/core/domain/delivery/delivery-request.ts'
import { StorageFailure, storeUnavailable } from '../../../src/core/domain/errors.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { NOON } from '../../support/runner/constants.ts'

const BY: Actor = { kind: 'app', name: 'admin', address: null }

/** Tests the operators' address over a store that records orders so. */
function testing(recordAction: (order: OperatorAction) => Promise<void>) {
  const logged: string[] = []
  const test = createTestOperator({
    reads: { listEndpoints: async () => [endpointState({}, { origin: 'operator' })] },
    write: { recordAction },
    clock: { now: () => NOON, monotonic: () => 0 },
    log: { warn: (_, message) => void logged.push(message) },
    sender: {
      send: async () => ({ kind: 'accepted', status: 200, durationMs: 1, answerStart: new Uint8Array() }),
      post: () => undefined,
    },
    signerOf: () => createDeliverySigner({ current: 'the-key-of-the-operators-hook' }, 'carrier', { userAgent: 'test' }),
    routeOf: () => ({ url: 'https://ops.example/hook' }),
    enable: async () => undefined,
  })
  return { test: () => test(BY), logged }
}

test.each([
  ['the disk of the store is full', new StorageFailure('the disk is full')],
  ['the order is refused, because the store takes nothing', storeUnavailable(new Error('SQLITE_FULL'))],
])('if %s, a test still says what came back', async (_, failure) => {
  const { test, logged } = testing(() => Promise.reject(failure))
  expect(await test()).toMatchObject({ kind: 'accepted', status: 200 })
  expect(logged).toEqual(['a test was sent, but the store could not record who ordered it'])
})

test('a fault of our own is no full disk: the order to send a test fails', async () => {
  await expect(testing(() => Promise.reject(new TypeError('a fault'))).test()).rejects.toThrow(TypeError)
})

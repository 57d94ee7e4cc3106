import { expect, test } from 'vitest'
import { createPostOperator } from '../../../src/console/events/operator.routes.ts'
import type { AttemptResult } from '../../../src/core/domain/delivery/delivery.ts'
import { createDeliverySigner, type PostRequest } from '../../../src/core/domain/delivery/delivery-request.ts'
import type { EndpointState } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { expectedSignature } from '../../support/network/webhook-receiver.ts'
import { NOON } from '../../support/runner/constants.ts'

const KEY = 'the-key-of-the-operators-hook'
const EVENT = Buffer.from('{"event":"disk_full"}')
const ended = { durationMs: 1, answerStart: new Uint8Array() }

function posting(state: Partial<EndpointState> | null, delivers = true) {
  const sent: PostRequest[] = []
  const now = { ms: 0, answer: { kind: 'accepted', status: 200, ...ended } as AttemptResult }
  const post = createPostOperator(
    {
      reads: {
        listEndpoints: async () =>
          state === null ? [] : [endpointState({ scheduleMs: [5000, 30_000] }, { origin: 'operator', ...state })],
      },
      sender: {
        async send(request) {
          sent.push(request)
          return now.answer
        },
        post: () => undefined,
      },
      signerOf: () => createDeliverySigner({ current: KEY }, 'carrier', { userAgent: 'test' }),
      routeOf: () => ({ url: 'https://ops.example/hook' }),
      clock: { now: () => NOON, monotonic: () => now.ms },
      delivers: () => delivers,
    },
    { relayId: 'relay' },
  )
  return { post: () => post(EVENT, 'disk_full_1_0'), sent, now }
}

test('an event that is not stored is posted with the operators’ key, and is no test', async () => {
  const { post, sent } = posting({})
  expect(await post()).toBe(true)
  const [request] = sent
  expect(request).toMatchObject({ url: 'https://ops.example/hook', body: EVENT })
  expect(request?.headers).toMatchObject({
    'webhook-id': 'relay_disk_full_1_0',
    'relay-sequence': '0',
    'x-service-hmac-sha256': expectedSignature(EVENT, KEY),
  })
  expect(request?.headers).not.toHaveProperty('relay-test')
})

test.each([
  ['no config names an address', null, true],
  ['its answers have disabled the address', { disabled: 'gone' }, true],
  ['another replica delivers to it', {}, false],
] as const)('nothing is posted if %s', async (_, state, delivers) => {
  const { post, sent } = posting(state, delivers)
  expect([await post(), sent]).toEqual([false, []])
})

test('an address that fails is posted to again on its schedule', async () => {
  const { post, sent, now } = posting({})
  now.answer = { kind: 'failed', reason: 'timeout', detail: 'no answer', ...ended }
  const postedAt: number[] = []
  for (now.ms = 0; now.ms < 100_000; now.ms += 1000) {
    const before = sent.length
    expect(await post()).toBe(false)
    if (sent.length > before) postedAt.push(now.ms)
  }
  expect(postedAt).toEqual([0, 5000, 35_000, 65_000, 95_000])
  now.answer = { kind: 'accepted', status: 200, ...ended }
  now.ms = 200_000
  expect([await post(), await post()]).toEqual([true, true])
})

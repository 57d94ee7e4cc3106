import { expect, test } from 'vitest'
import { createEnableOperator } from '../../../src/console/events/operator.routes.ts'
import type { EndpointState } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { OPERATOR } from '../../support/relay/operator.ts'

const DAY_MS = 86_400_000

function enabling(state: Partial<EndpointState> | null, nowMs = 0) {
  const enabled: unknown[] = []
  const states = state === null ? [] : [endpointState({}, { origin: 'operator', ...state })]
  const operator = createEnableOperator({
    reads: { listEndpoints: async () => states },
    write: {
      changeEndpoint: async ({ change, action }) => {
        enabled.push([change.enabled, action?.action ?? null])
        return { kind: 'unknown' }
      },
    },
    clock: { now: () => nowMs },
    review: () => undefined,
  })
  return { ...operator, enabled }
}

test('a disabled address of operator events is tried again a day later, whatever the clock did', async () => {
  for (const [disabled, nowMs, expected] of [
    ['gone', DAY_MS - 1, []],
    ['gone', DAY_MS, [[true, null]]],
    ['failing', -DAY_MS, [[true, null]]],
    ['unnamed', DAY_MS, []],
    [null, DAY_MS, []],
  ] as const) {
    const operator = enabling({ disabled, disabledSince: { atMs: 0, by: null } }, nowMs)
    await operator.tryDaily()
    expect([disabled, nowMs, operator.enabled]).toEqual([disabled, nowMs, expected])
  }
})

test('an order enables a disabled address of operator events, and is refused if there is none', async () => {
  const operator = enabling({ disabled: 'gone' })
  await operator.enable(OPERATOR)
  expect(operator.enabled).toEqual([[true, 'operator.enabled']])
  await expect(enabling(null).enable(OPERATOR)).rejects.toMatchObject({ code: 'not_found' })
  await expect(enabling({ disabled: 'unnamed' }).enable(OPERATOR)).rejects.toMatchObject({ code: 'not_found' })
})

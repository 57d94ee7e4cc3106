import { expect, test } from 'vitest'
import { newHealth } from '../../../../src/core/domain/delivery/endpoint-health.ts'
import { createEndpointRates } from '../../../../src/core/flow/delivery/dispatching/endpoint-queues.ts'
import { endpointState } from '../../../support/delivery/endpoint-state.ts'

const endpoint = (ratePerSecond: number | null) => endpointState({ id: '1', ratePerSecond })

function openRates() {
  let nowMs = 0
  const rates = createEndpointRates({ now: () => nowMs, monotonic: () => nowMs })
  return {
    rates,
    start: (count: number) => {
      for (let nth = 0; nth < count; nth++) rates.started('1')
    },
    setTime: (ms: number) => {
      nowMs = ms
    },
  }
}

test('attempts made without a rate do not count when a rate is set again', () => {
  const { rates, start, setTime } = openRates()
  expect(rates.allowance([endpoint(10)])).toEqual({ '1': 10 })
  start(10)
  setTime(1000)
  expect(rates.allowance([endpoint(null)])).toEqual({})
  start(3000)
  expect(rates.waitMs()).toBeNull()
  setTime(2000)
  expect(rates.allowance([endpoint(10)])).toEqual({ '1': 10 })
  start(10)
  expect(rates.waitMs()).toBe(100)
  setTime(2500)
  expect(rates.allowance([endpoint(10)])).toEqual({ '1': 5 })
})

test('an endpoint that is removed while its rate is used up causes no further pass', () => {
  const { rates, start, setTime } = openRates()
  rates.allowance([endpoint(1)])
  start(1)
  expect(rates.waitMs()).toBe(1000)
  setTime(10)
  rates.allowance([])
  expect(rates.waitMs()).toBeNull()
})

test('7.4: an endpoint with a rate and a pace gets the lower of the two', () => {
  const pace = { perSecond: 3, limitPerSecond: 6, halvedAtMs: 0, waitUntilMs: 0 }
  const paced = (ratePerSecond: number | null) => endpointState({ id: '1', ratePerSecond }, { health: { ...newHealth, pace } })
  const allowed = ([null, 2, 9] as const).map((rate) => openRates().rates.allowance([paced(rate)]))
  expect(allowed).toEqual([{ '1': 3 }, { '1': 2 }, { '1': 3 }])
})

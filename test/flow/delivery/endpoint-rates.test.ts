import { expect, test } from 'vitest'
import { createEndpointRates } from '../../../src/flow/delivery/dispatching/endpoint-rates.ts'
import { endpointSettings } from '../../support/delivery/stored-endpoint.ts'

const endpoint = (ratePerSecond: number | null) => ({ ...endpointSettings, id: '1', ratePerSecond })

test('attempts made without a rate do not count when a rate is set again', () => {
  const rates = createEndpointRates()
  const start = (count: number) => {
    for (let nth = 0; nth < count; nth++) rates.started('1')
  }
  expect(rates.allowance([endpoint(10)], 0)).toEqual({ '1': 10 })
  start(10)
  expect(rates.allowance([endpoint(null)], 1000)).toEqual({})
  start(3000)
  expect(rates.waitMs()).toBeNull()
  expect(rates.allowance([endpoint(10)], 2000)).toEqual({ '1': 10 })
  start(10)
  expect(rates.waitMs()).toBe(100)
  expect(rates.allowance([endpoint(10)], 2500)).toEqual({ '1': 5 })
})

test('an endpoint that is removed while its rate is used up causes no further pass', () => {
  const rates = createEndpointRates()
  rates.allowance([endpoint(1)], 0)
  rates.started('1')
  expect(rates.waitMs()).toBe(1000)
  rates.allowance([], 10)
  expect(rates.waitMs()).toBeNull()
})

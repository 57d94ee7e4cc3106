import { expect, test } from 'vitest'
import { newHealth } from '../../../../src/core/domain/delivery/endpoint-health.ts'
import type { EndpointBacklog, EndpointState } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { readEndpointGauges } from '../../../../src/core/flow/delivery/endpoint-queries.ts'
import { endpointState } from '../../../support/delivery/endpoint-state.ts'
import { NOON } from '../../../support/runner/constants.ts'

function stateOf(id: string, change: Partial<EndpointState> = {}): EndpointState {
  return endpointState({ id, name: `shop-${id}` }, change)
}

function gaugesOf(states: readonly EndpointState[], backlogs: Readonly<Record<string, EndpointBacklog>>) {
  const reads = {
    listEndpoints: async () => states,
    countBacklogs: async () => new Map(Object.entries(backlogs)),
  }
  return readEndpointGauges({ reads, clock: { now: () => NOON } }, { max: 2, others: 'others' })
}

const probing = { ...newHealth, probing: { atMs: NOON, failed: 0 } }

test('the gauge `others` is the sum for endpoints without gauges of their own', async () => {
  const works = stateOf('6', { health: { ...newHealth, lastSuccessAtMs: NOON } })
  const states = [stateOf('1'), stateOf('2', { health: probing }), stateOf('3', { health: probing }), stateOf('4', { disabled: 'gone' })]
  const gauges = await gaugesOf([...states, stateOf('5', { health: probing }), works, stateOf('7')], {
    1: { waiting: 1, oldestAtMs: NOON - 9000, dead: 0 },
    3: { waiting: 20, oldestAtMs: NOON - 1000, dead: 3 },
    5: { waiting: 300, oldestAtMs: NOON - 4000, dead: 40 },
  })
  expect(gauges).toEqual([
    { name: 'shop-1', waiting: 1, oldestWaitingSeconds: 9, dead: 0, conditions: { failing: 0, disabled: 0, untried: 1, delivering: 0 } },
    { name: 'shop-2', waiting: 0, oldestWaitingSeconds: 0, dead: 0, conditions: { failing: 1, disabled: 0, untried: 0, delivering: 0 } },
    { name: 'others', waiting: 320, oldestWaitingSeconds: 4, dead: 43, conditions: { failing: 2, disabled: 1, untried: 1, delivering: 1 } },
  ])
})

test('the gauge `others` is absent while every endpoint has its own gauge', async () => {
  expect((await gaugesOf([stateOf('1'), stateOf('2')], {})).map(({ name }) => name)).toEqual(['shop-1', 'shop-2'])
})

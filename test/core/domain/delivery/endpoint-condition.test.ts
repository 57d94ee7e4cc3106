import { expect, test } from 'vitest'
import { newHealth } from '../../../../src/core/domain/delivery/endpoint-health.ts'
import { CONDITIONS, conditionOf, searchEndpoints } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { endpointState } from '../../../support/delivery/endpoint-state.ts'

const probing = { atMs: 2, failed: 1 }
const states = [
  endpointState({ id: '1', name: 'new' }, { health: newHealth }),
  endpointState({ id: '2', name: 'old' }, { health: { ...newHealth, lastSuccessAtMs: 1 } }),
  endpointState({ id: '3', name: 'bad' }, { health: { ...newHealth, failingSinceMs: 1, probing } }),
  endpointState({ id: '4', name: 'off' }, { health: newHealth, disabled: 'operator' }),
]

test('a webhook that has accepted nothing is untried, and not one that delivers', () => {
  expect(states.map(conditionOf)).toEqual(['untried', 'delivering', 'failing', 'disabled'])
})

test('a search finds webhooks by condition, and lists the untried before those that deliver', () => {
  expect(searchEndpoints(states, { text: '', condition: null }).map(conditionOf)).toEqual(CONDITIONS)
  expect(searchEndpoints(states, { text: '', condition: 'untried' }).map(({ endpoint }) => endpoint.name)).toEqual(['new'])
})

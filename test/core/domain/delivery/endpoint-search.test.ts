import { expect, test } from 'vitest'
import { newHealth } from '../../../../src/core/domain/delivery/endpoint-health.ts'
import { type EndpointState, searchEndpoints } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { endpointState } from '../../../support/delivery/endpoint-state.ts'

const failing = { ...newHealth, failingSinceMs: 1, probing: { atMs: 2, failed: 1 } }

function endpoint(id: string, name: string, change: Partial<EndpointState> = {}): EndpointState {
  return endpointState({ id, name, url: `http://${name}.example/${id}` }, change)
}

const all = [
  endpoint('1', 'berit'),
  endpoint('2', 'Anna', { disabled: 'operator' }),
  endpoint('3', 'celia', { health: failing }),
  endpoint('4', 'anders'),
  endpoint('5', 'bo', { health: failing }),
]
const found = (search: Parameters<typeof searchEndpoints>[1]) => searchEndpoints(all, search).map(({ endpoint: { name } }) => name)

test('endpoints with problems come first, and then the others by name', () => {
  expect(found({ text: '', condition: null })).toEqual(['bo', 'celia', 'Anna', 'anders', 'berit'])
})

test('endpoints are found by a part of their name or URL, in any case', () => {
  expect(found({ text: 'AN', condition: null })).toEqual(['Anna', 'anders'])
  expect(found({ text: 'celia.example/3', condition: null })).toEqual(['celia'])
})

test('endpoints are found by their state', () => {
  expect(found({ text: '', condition: 'failing' })).toEqual(['bo', 'celia'])
  expect(found({ text: 'a', condition: 'disabled' })).toEqual(['Anna'])
})

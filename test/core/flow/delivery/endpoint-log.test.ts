import { expect, test } from 'vitest'
import type { AttemptResult } from '../../../../src/core/domain/delivery/delivery.ts'
import { newHealth } from '../../../../src/core/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { createEndpointLog } from '../../../../src/core/flow/delivery/dispatching/send-delivery.ts'
import { endpointState } from '../../../support/delivery/endpoint-state.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

const refused: AttemptResult = { kind: 'rejected', status: 500, retryAfterMs: null, durationMs: 1, answerStart: new Uint8Array() }
const probing = { ...newHealth, probing: { atMs: 5000, failed: 0 } }

function stateOf(change: Partial<EndpointState>): readonly EndpointState[] {
  return [endpointState({}, change)]
}

function world() {
  const book = createLogBook()
  let atMs = 0
  const endpointLog = createEndpointLog({ log: book.log, clock: { now: () => atMs, monotonic: () => atMs } })
  const pass = (ms: number) => {
    atMs += ms
  }
  return { ...book, endpointLog, pass }
}

test('each change of an endpoint’s state is logged once, and an unchanged state is not', () => {
  const { lines, endpointLog } = world()
  for (const state of [{}, { health: probing }, { health: probing }, { disabled: 'gone' }, { disabled: 'gone' }, {}, {}] as const)
    endpointLog.update(stateOf(state))
  expect(lines.map(({ level, message, fields }) => [level, message.split(/[:;,]/)[0], fields])).toEqual([
    ['warn', 'an endpoint is failing', { endpoint: 'shop', before: 'active' }],
    ['warn', 'an endpoint answered 410 and is disabled', { endpoint: 'shop', before: 'failing' }],
    ['info', 'an endpoint is sent events again', { endpoint: 'shop', before: 'gone' }],
  ])
})

test('disabled endpoints are logged at the start of the relay', () => {
  const { lines, endpointLog } = world()
  endpointLog.update(stateOf({ disabled: 'failing' }))
  expect(lines.map(({ message }) => message)).toEqual(['an endpoint failed for 120 h and is disabled; everything for it waits'])
})

test('an endpoint that was failing before the start is not logged as newly failing', () => {
  const { lines, endpointLog } = world()
  endpointLog.update(stateOf({ health: probing }))
  endpointLog.update(stateOf({}))
  expect(lines.map(({ message }) => message.split(':')[0])).toEqual([
    'an endpoint has been failing since before this start',
    'an endpoint is sent events again, including all that waited',
  ])
})

test('failures of an endpoint are logged once a minute, with their number and the last cause', () => {
  const { lines, endpointLog, pass } = world()
  for (let nth = 0; nth < 100; nth++) endpointLog.attempted('shop', refused)
  endpointLog.attempted('other', { kind: 'failed', reason: 'connection_refused', detail: '', durationMs: 1, answerStart: new Uint8Array() })
  pass(60_000)
  endpointLog.attempted('shop', refused)
  endpointLog.attempted('shop', { kind: 'accepted', status: 200, durationMs: 1, answerStart: new Uint8Array() })
  expect(lines.map(({ fields }) => fields)).toEqual([
    { endpoint: 'shop', count: 1, last: 'status 500' },
    { endpoint: 'other', count: 1, last: 'connection_refused' },
    { endpoint: 'shop', count: 100, last: 'status 500' },
  ])
})

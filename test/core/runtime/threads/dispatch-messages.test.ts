import { expect, test } from 'vitest'
import type { DispatchRoundReport } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { newHealth } from '../../../../src/core/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { createReportReceiver, createReportSender, withoutViews } from '../../../../src/core/runtime/threads/dispatch-messages.ts'
import { endpointState } from '../../../support/delivery/endpoint-state.ts'

const state = (id: string) => endpointState({ id }, { keys: { current: 'sealed', next: null } })
const report = (endpoints: readonly EndpointState[]): DispatchRoundReport => ({
  claimed: [],
  overtaken: [],
  endpoints,
  notices: [],
  more: [],
  nextAtMs: null,
})

test('a message of a round copies only the bytes of an answer, not the buffer around them', () => {
  // The network gives an answer like this, as a few bytes of a larger buffer.
  const answerStart = Buffer.from('thanks')
  expect(answerStart.buffer.byteLength).toBeGreaterThan(answerStart.byteLength)
  const ref = {
    deliveryId: 1,
    endpointId: '10',
    parcelId: 7,
    sequence: 3,
    plannedAtMs: 4,
    attempts: 2,
    spared: 1,
    limited: 0,
    firstFailedAtMs: null,
  }
  const result = { kind: 'accepted', status: 200, durationMs: 2, answerStart } as const
  const round = { settled: [{ ...ref, result, atMs: 7, random: 0.75 }], inFlight: { '10': [5, 6] }, allowance: {}, claimsMax: 9, nowMs: 8 }
  const sent = structuredClone(withoutViews(round))
  expect(sent).toEqual({
    ...round,
    settled: [{ ...ref, result: { ...result, answerStart: new Uint8Array(answerStart) }, atMs: 7, random: 0.75 }],
  })
  expect(sent.settled[0]?.result.answerStart.buffer.byteLength).toBe('thanks'.length)
})

test('endpoints are sent only when they have changed', () => {
  const [send, receive] = [createReportSender(), createReportReceiver()]
  const shop = state('10')
  const tell = (states: readonly EndpointState[]) => {
    const sent = send(report(states))
    return { isTold: sent.endpoints !== null, endpoints: receive(structuredClone(sent)).endpoints }
  }
  const first = tell([shop])
  const healthy = tell([{ ...shop, health: { ...newHealth, lastSuccessAtMs: 5 } }])
  expect([first.isTold, healthy.isTold]).toEqual([true, false])
  expect(healthy.endpoints).toBe(first.endpoints)
  for (const changed of [
    [{ ...shop, disabled: 'gone' as const }],
    [{ ...shop, health: { ...newHealth, probing: { atMs: 5, failed: 0 } } }],
    [{ ...shop, endpoint: { ...shop.endpoint } }],
    [],
    [shop, state('11')],
  ]) {
    expect(tell(changed)).toEqual({ isTold: true, endpoints: changed })
  }
})

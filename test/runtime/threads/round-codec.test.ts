import { expect, test } from 'vitest'
import type { DispatchRound, DispatchRoundReport } from '../../../src/domain/delivery/dispatch-round.ts'
import { newHealth } from '../../../src/domain/delivery/endpoint-health.ts'
import type { EndpointState } from '../../../src/domain/delivery/endpoint-state.ts'
import { createReportDecoder, createReportEncoder, decodeRound, encodeRound } from '../../../src/runtime/threads/round-codec.ts'
import { endpointSettings } from '../../support/stored-endpoint.ts'

const ref = (deliveryId: number, endpointId: string) => ({
  deliveryId,
  endpointId,
  parcelId: 7,
  sequence: 3,
  plannedAtMs: 4,
  attempts: 2,
  spared: 1,
  firstFailedAtMs: null,
})
const answered = { durationMs: 1.5, answerStart: new Uint8Array() }

test('a turn arrives as it was packed: what an endpoint accepted, refused, answered and failed at', () => {
  const settled = [
    { ...ref(1, '10'), result: { kind: 'accepted', status: 204, ...answered }, atMs: 1_700_000_000_123, random: 0.25 },
    { ...ref(2, '11'), result: { kind: 'rejected', status: 503, retryAfterMs: 4000, ...answered }, atMs: 5, random: 0 },
    {
      ...ref(3, '10'),
      firstFailedAtMs: 0,
      result: { kind: 'failed', reason: 'dns', detail: 'ENOTFOUND', ...answered },
      atMs: 6,
      random: 0.5,
    },
    // As the network hands it over: a few bytes of a larger piece of memory.
    {
      ...ref(4, '11'),
      result: { kind: 'accepted', status: 200, durationMs: 2, answerStart: Buffer.from('thanks') },
      atMs: 7,
      random: 0.75,
    },
    {
      ...ref(5, '10'),
      result: { kind: 'accepted', status: 200, durationMs: 2, answerStart: new Uint8Array(), byNextKey: 'sealed' },
      atMs: 8,
      random: 0.5,
    },
  ] as const
  const turn: DispatchRound = {
    settled,
    inFlight: { '10': [5, 6] },
    allowance: {},
    claimsMax: 9,
    nowMs: 8,
  }
  const packed = structuredClone(encodeRound(turn))
  expect(packed.results.map(([place]) => place)).toEqual([1, 2, 3, 4])
  expect(packed.results[2]?.[1].answerStart.buffer.byteLength).toBe('thanks'.length)
  expect(decodeRound(packed)).toEqual({
    ...turn,
    settled: settled.map((one) => ({ ...one, result: { ...one.result, answerStart: new Uint8Array(one.result.answerStart) } })),
  })
})

const state = (id: string): EndpointState => ({
  endpoint: { ...endpointSettings, id },
  origin: 'managed',
  disabled: null,
  health: newHealth,
  keys: { current: 'sealed', next: null, previous: null },
  queuedTo: null,
  backfilled: null,
})
const report = (endpoints: readonly EndpointState[]): DispatchRoundReport => ({
  claimed: [],
  overtaken: [],
  endpoints,
  notices: [],
  more: [],
  nextAtMs: null,
})

test('a report arrives as it was packed, bodies that are gone included', () => {
  const claimed = [
    { ...ref(1, '10'), previousSequence: 0, body: Buffer.from('first') },
    { ...ref(2, '11'), previousSequence: 2, firstFailedAtMs: 9, body: null },
    { ...ref(3, '10'), previousSequence: 1, body: Buffer.from('') },
    { ...ref(4, '10'), previousSequence: 1, body: Buffer.from('last') },
  ]
  const full = { ...report([state('10')]), claimed, overtaken: [{ endpointId: '10', deliveryId: 9 }], more: ['10'], nextAtMs: 99 }
  expect(createReportDecoder()(structuredClone(createReportEncoder()(full)))).toEqual(full)
})

test('endpoints are sent only when they have changed', () => {
  const [pack, unpack] = [createReportEncoder(), createReportDecoder()]
  const shop = state('10')
  const tell = (states: readonly EndpointState[]) => {
    const packed = pack(report(states))
    return { isTold: packed.endpoints !== null, endpoints: unpack(structuredClone(packed)).endpoints }
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

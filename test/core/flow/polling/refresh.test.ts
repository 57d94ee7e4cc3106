import { expect, test } from 'vitest'
import type { ParcelView } from '../../../../src/core/domain/history/parcel-state.ts'
import type { IncomingPoll } from '../../../../src/core/domain/history/recording.ts'
import type { CarrierAnswer } from '../../../../src/core/domain/polling/carrier-answer.ts'
import type { PollFailure } from '../../../../src/core/domain/polling/poll.ts'
import { createRefresh } from '../../../../src/core/flow/polling/refresh.ts'
import { aPoll } from '../../../support/history/builders.ts'
import { emptyParcel, observe, presentRecord } from '../../../support/history/parcel-record.ts'

const DUE = { parcelId: 7, identifiers: ['AB123456789SE', '1001'] }

/** Opens a carrier that answers by identifier and language, and a store that accepts everything. */
function world(
  answers: Readonly<Record<string, CarrierAnswer>>,
  { quarantines = false, lapse = () => new AbortController().signal, onAsked = () => {}, onRecorded = () => {} } = {},
) {
  const asked: string[] = []
  const recorded: IncomingPoll[] = []
  const told: (PollFailure | string)[] = []
  const ended: string[] = []
  let parcel = emptyParcel
  const view = (): ParcelView => ({
    parcelId: 7,
    version: 0,
    ...presentRecord(parcel),
    lastSeenAtMs: 1,
    watched: true,
    unknownToCarrier: false,
    languagesAsked: [],
  })
  const refresh = createRefresh(
    {
      carrier: {
        fetchAll: async ({ identifier, language, priority, signal }) => {
          if (signal?.aborted === true) return { kind: 'unavailable', reason: 'timeout' }
          asked.push(`${identifier} ${language} ${priority}`)
          onAsked()
          return answers[`${identifier} ${language}`] ?? { kind: 'not_found' }
        },
      },
      recorder: {
        submit: async (incoming) => {
          recorded.push(incoming)
          onRecorded()
          if (quarantines) return { kind: 'quarantined', reason: 'parcel_full' }
          parcel = observe(parcel, incoming.observation)
          return { kind: 'recorded', parcelId: 7, changed: true, newEntries: 1, queued: 0 }
        },
      },
      reads: { findParcel: async () => view() },
      write: {
        notePollFailure: async (failure) => void told.push(failure),
        noteNotPollable: async (identifier) => void told.push(`not pollable: ${identifier}`),
        noteLanguageAsked: async ({ language }) => void told.push(`asked in ${language}`),
      },
      meter: { pollEnded: (result) => void ended.push(result) },
      lapse,
      clock: { now: () => 5, monotonic: () => 5 },
    },
    { languages: ['en', 'sv'] },
  )
  return { refresh, asked, recorded, told, ended }
}

const found = (language: string): CarrierAnswer => ({ kind: 'found', observation: aPoll({ language }) })

test('6.2: a poll asks in the first language, and in others only if texts are missing', async () => {
  const { refresh, asked, recorded, told } = world({ 'AB123456789SE en': found('en'), 'AB123456789SE sv': found('sv') })
  expect(await refresh.poll(DUE)).toBe('recorded')
  expect(await refresh.poll(DUE)).toBe('recorded')
  expect(asked).toEqual(['AB123456789SE en schedule', 'AB123456789SE sv schedule', 'AB123456789SE en schedule'])
  expect(recorded.map(({ watch }) => watch)).toEqual([false, false, false])
  expect(told).toEqual(['asked in sv'])
})

test('6.3: identifiers are tried in order, and unknown ones are remembered', async () => {
  const { refresh, asked, told } = world({ '1001 en': found('en'), '1001 sv': found('sv') })
  expect(await refresh.poll(DUE)).toBe('recorded')
  expect(asked[0]).toBe('AB123456789SE en schedule')
  expect(told[0]).toBe('not pollable: AB123456789SE')
})

test('a parcel counts as unknown if the carrier knows none of its identifiers', async () => {
  const { refresh, told } = world({})
  expect(await refresh.poll(DUE)).toBe('unknown')
  expect(told.at(-1)).toEqual({ parcelId: 7, kind: 'unknown', atMs: 5 })
})

test('if the carrier cannot be asked, the next identifier is not tried', async () => {
  const { refresh, asked, told } = world({ 'AB123456789SE en': { kind: 'unavailable', reason: 'rate_limited', retryAfterMs: 9000 } })
  expect(await refresh.poll(DUE)).toBe('unavailable')
  expect(asked).toHaveLength(1)
  expect(told).toEqual([{ parcelId: 7, kind: 'unavailable', atMs: 5, retryAfterMs: 9000 }])
})

test('P3: an unreadable answer affects only its own parcel', async () => {
  const { refresh } = world({ 'AB123456789SE en': { kind: 'unavailable', reason: 'bad_response' } })
  expect(await refresh.poll(DUE)).toBe('unusable')
})

test.each(['server_error', 'timeout', 'network', 'rejected'] as const)(
  '6.1: a call that ends with %s is a failure of its own parcel only',
  async (reason) => {
    const { refresh, told } = world({ 'AB123456789SE en': { kind: 'unavailable', reason } })
    expect(await refresh.poll(DUE)).toBe('unusable')
    expect(told).toEqual([{ parcelId: 7, kind: reason === 'rejected' ? 'unusable' : 'unavailable', atMs: 5 }])
    expect(await refresh.refreshNow(DUE)).toBe(reason === 'rejected' ? 'unusable' : 'unavailable')
  },
)

test.each([
  ['budget', { retryAfterMs: 9000 }],
  // One answer ends a pause early, so the end of the pause is no time to wait for.
  ['resting', {}],
] as const)('6.1: a call that is not made (%s) does not count as a failure of its parcel', async (reason, wait) => {
  const { refresh, told } = world({ 'AB123456789SE en': { kind: 'unavailable', reason, retryAfterMs: 9000 } })
  expect(await refresh.poll(DUE)).toBe('unavailable')
  expect(told).toEqual([{ parcelId: 7, kind: 'not_asked', atMs: 5, ...wait }])
})

test('a poll whose answer is quarantined counts as failed', async () => {
  const { refresh, asked, told } = world({ 'AB123456789SE en': found('en') }, { quarantines: true })
  expect(await refresh.poll(DUE)).toBe('unusable')
  expect(told).toEqual([{ parcelId: 7, kind: 'unavailable', atMs: 5 }])
  expect(asked).toEqual(['AB123456789SE en schedule'])
})

test('a refresh by an operator asks in every configured language, before scheduled polls', async () => {
  const { refresh, asked } = world({ 'AB123456789SE en': found('en'), 'AB123456789SE sv': found('sv') })
  await refresh.refreshNow(DUE)
  await refresh.refreshNow(DUE)
  expect(asked).toEqual(['AB123456789SE en app', 'AB123456789SE sv app', 'AB123456789SE en app', 'AB123456789SE sv app'])
})

test.each([
  ['after an answer', { 'AB123456789SE en': found('en') }, ['found']],
  ['after a 404', {}, ['not_found']],
  ['in a call', { 'AB123456789SE en': { kind: 'unavailable', reason: 'timeout' } }, []],
] as const)('a replica that loses its lease %s asks nothing more and saves no failure', async (_, answers, ends) => {
  const [lost, next] = [new AbortController(), new AbortController()]
  const lapse = () => (lost.signal.aborted ? next : lost).signal
  const { refresh, asked, told, ended } = world(answers, { lapse, onAsked: () => lost.abort() })
  expect(await refresh.poll(DUE)).toBe('lapsed')
  expect(asked).toEqual(['AB123456789SE en schedule'])
  expect(told.filter((one) => typeof one !== 'string')).toEqual([])
  expect(ended).toEqual(ends)
})

test('an answer that cannot be saved is a failure, unless the replica has lost its lease', async () => {
  const lost = new AbortController()
  const onRecorded = () => {
    throw new Error('the database is away')
  }
  const { refresh } = world({ 'AB123456789SE en': found('en') }, { lapse: () => lost.signal, onRecorded })
  await expect(refresh.poll(DUE)).rejects.toThrow('the database is away')
  const late = world({ 'AB123456789SE en': found('en') }, { lapse: () => lost.signal, onAsked: () => lost.abort(), onRecorded })
  expect(await late.refresh.poll(DUE)).toBe('lapsed')
})

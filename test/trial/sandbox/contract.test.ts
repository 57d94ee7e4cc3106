import { expect, test } from 'vitest'
import { askStatus, assertAll, assertCarrierContract, assertEntry, tokenOf } from '../../support/network/spec-client.ts'
import { entriesOf, stillSandbox } from './sandbox-fixture.ts'

const account = { username: 'demo', password: 'demo-password' }

test('the sandbox keeps the contract of the specification in a world full of hard cases', async () => {
  await using sandbox = await stillSandbox({ parcels: 40, hard: 0.4 })
  await sandbox.finish()
  const knownNumbers = sandbox.world.parcels().map(({ trackingNumber }) => trackingNumber)
  const report = await assertCarrierContract({ ...account, baseUrl: sandbox.url, knownNumbers, languages: ['en', 'sv'] })
  const entries = sandbox.world.parcels().reduce((sum, parcel) => sum + parcel.entries, 0)
  expect(report.parcels).toBe(40)
  expect(report.entries).toBe(entries * 2)
  expect(report.hidden).toBeGreaterThan(100)
  expect(report.consumerTexts).toBeGreaterThan(100)
  expect(report.differingTexts).toBe(entries - sandbox.world.tally.textsWithdrawn)
})

test('the sandbox keeps the contract in a world without hard cases', async () => {
  await using sandbox = await stillSandbox({ parcels: 3, hard: 0, tokenForm: 'jwt' })
  await sandbox.finish()
  const knownNumbers = sandbox.world.parcels().map(({ trackingNumber }) => trackingNumber)
  const report = await assertCarrierContract({ ...account, baseUrl: sandbox.url, knownNumbers, languages: ['sv', 'en'] })
  expect(report.entries).toBeGreaterThanOrEqual(3 * 6 * 2)
})

const entry = {
  status: 'TerminalArrived',
  detailedStatus: 'ArrivedT1',
  eventTimestamp: '2026-05-01T10:00:00.123Z',
  location: '',
  detailedStatusDescription: 'Arrived',
  consumerDescription: null,
  displayToConsumer: false,
}
const answerWith = (...statuses: readonly object[]) => ({
  status: 200,
  contentType: 'application/json; charset=utf-8',
  body: { statuses, trackingIds: ['370000'], distributionType: 'Mailbox' },
})

test('the spec client accepts unknown fields and values', () => {
  expect(() => assertEntry({ ...entry, status: 'Odd', scanNumber: 1e30, hub: { lanes: [] } })).not.toThrow()
})

test.each([
  ['a missing location', { ...entry, location: undefined }],
  ['a null location', { ...entry, location: null }],
  ['a missing consumer description', Object.fromEntries(Object.entries(entry).filter(([name]) => name !== 'consumerDescription'))],
  ['a consumer text on a hidden entry', { ...entry, consumerDescription: 'Hello' }],
  ['localised texts as in pushes', { ...entry, consumerDescription: [] }],
  ['a time with an offset', { ...entry, eventTimestamp: '2026-05-01T10:00:00+02:00' }],
  ['a time with two decimals', { ...entry, eventTimestamp: '2026-05-01T10:00:00.12Z' }],
  ['a flag as text', { ...entry, displayToConsumer: 'false' }],
])('the spec client refuses %s', (_what, bad) => {
  expect(() => assertEntry(bad)).toThrow()
})

test('the spec client refuses a history that is oldest first, and accepts equal times', () => {
  const newer = { ...entry, eventTimestamp: '2026-05-01T10:00:01Z' }
  expect(() => assertAll(answerWith(entry, newer))).toThrow('newest first')
  expect(assertAll(answerWith(newer, entry, entry)).statuses).toHaveLength(3)
})

test.each([
  ['tracking ids that are numbers', { trackingIds: [370000] }],
  ['tracking ids with letters', { trackingIds: ['AB370000'] }],
  ['no tracking ids', { trackingIds: [] }],
  ['no distribution type', { distributionType: undefined }],
])('the spec client refuses %s', (_what, change) => {
  const answer = answerWith(entry)
  expect(() => assertAll({ ...answer, body: { ...answer.body, ...change } })).toThrow()
})

test('the spec client refuses another content type', () => {
  expect(() => assertAll({ ...answerWith(entry), contentType: 'text/html' })).toThrow('application/json')
})

test('some parcels are found only by their number, the others also by their tracking ids', async () => {
  await using sandbox = await stillSandbox({ parcels: 10, mix: { numberOnly: 0.5 } })
  await sandbox.finish()
  const token = await tokenOf({ ...account, baseUrl: sandbox.url })
  const parcels = sandbox.world.parcels()
  expect(parcels.filter(({ numberOnly }) => numberOnly)).toHaveLength(5)
  for (const { trackingNumber, trackingIds, numberOnly, answers } of parcels) {
    const byNumber = await askStatus(sandbox.url, { number: trackingNumber, kind: 'all', language: 'sv' }, token)
    expect(byNumber.body).toEqual(JSON.parse(answers.sv))
    for (const id of trackingIds) {
      const byId = await askStatus(sandbox.url, { number: id, kind: 'all', language: 'sv' }, token)
      expect(byId.status).toBe(numberOnly ? 404 : 200)
    }
  }
})

test('a parcel without events has an empty history and no latest status', async () => {
  await using sandbox = await stillSandbox({ parcels: 0 })
  sandbox.addParcel({ trackingNumber: 'XY000000001SE', trackingIds: ['370000000000000001'] })
  const token = await tokenOf({ ...account, baseUrl: sandbox.url })
  const ask = (kind: 'all' | 'latest') => askStatus(sandbox.url, { number: 'XY000000001SE', kind }, token)
  expect(assertAll(await ask('all')).statuses).toEqual([])
  expect((await ask('latest')).status).toBe(404)
  sandbox.scan('XY000000001SE', { status: 'Created' })
  expect((await ask('latest')).status).toBe(200)
  expect(() => sandbox.addParcel({ trackingNumber: 'XY000000002SE', trackingIds: ['370000000000000001'] })).toThrow(RangeError)
})

test('an answer in a language without texts has empty texts', async () => {
  await using sandbox = await stillSandbox({ parcels: 1 })
  await sandbox.finish()
  const token = await tokenOf({ ...account, baseUrl: sandbox.url })
  const number = sandbox.world.parcels()[0]?.trackingNumber ?? ''
  const { body } = await askStatus(sandbox.url, { number, kind: 'all', language: 'fi' }, token)
  const entries = entriesOf(JSON.stringify(body))
  expect(entries.length).toBeGreaterThan(5)
  for (const spoken of entries) expect(spoken).toMatchObject({ detailedStatusDescription: '', consumerDescription: null })
})

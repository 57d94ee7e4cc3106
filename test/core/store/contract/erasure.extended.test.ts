import { gzipSync } from 'node:zlib'
import { describe, expect, test, vi } from 'vitest'
import type { OperatorAction } from '../../../../src/core/domain/admin/operator-action.ts'
import { encodeFeedItem } from '../../../../src/core/domain/delivery/feed-entry.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { OPERATOR } from '../../../support/relay/operator.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { filesThatHold, tablesThatHold } from '../../../support/store/all-rows.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'
import { changeStoredRows, storedNumber } from '../../../support/store/stored-rows.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

const claim = { settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: NOON }

const open = (engine: (typeof engines)[number]) => openErasures(engine)

const at = (seconds: number) => new Date(NOON + seconds * 1000).toISOString()

describe.each(engines)('erasures on $name', (engine) => {
  test('no table contains anything of an erased parcel', async () => {
    const { path, writes, record, push, poll, forget, parcelIdOf } = await open(engine)
    const { id } = await addEndpoint(writes, NOON)
    await push({ trackingIds: ['GONE0001'], texts: { en: 'left with PLANTEDNEIGHBOUR' }, location: 'PLANTEDTOWN', eventTime: at(1) })
    await poll({
      asked: 'GONE0002',
      trackingIds: ['GONE0001'],
      statuses: [{ status: 'Delivered', detailedStatusDescription: 'PLANTEDPOLL', eventTimestamp: at(5) }],
    })
    await push({ trackingIds: ['KEPT0001'], eventTime: at(1) })
    const broken = Buffer.from(JSON.stringify({ trackingIds: ['gone0001'], note: 'PLANTEDBROKEN' }))
    await record(parsePush({ body: broken, contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 }))
    const packed = gzipSync(pushBody({ trackingIds: ['GONE0002'] }))
    await record(parsePush({ body: packed, contentEncoding: 'gzip', receivedAtMs: NOON, keyIndex: 0 }))
    const [delivery] = (await writes.dispatchRound(claim)).claimed
    if (delivery === undefined) throw new Error('nothing was claimed')
    const answerStart = Buffer.from('no such parcel: GONE0001')
    const failed = {
      ...delivery,
      atMs: NOON,
      random: 0,
      result: { kind: 'rejected', status: 500, answerStart, durationMs: 1, retryAfterMs: null },
    } as const
    await writes.dispatchRound({ ...claim, settled: [failed], nowMs: NOON })
    const order: OperatorAction = {
      atMs: NOON,
      by: OPERATOR,
      action: 'deliveries.replayed',
      target: { kind: 'parcel', id: 'GONE0002' },
      detail: { parcel: 'GONE0001' },
    }
    await writes.recordAction(order)
    const words = ['GONE0001', 'GONE0002', 'PLANTED']
    expect((await tablesThatHold(path, words)).length).toBeGreaterThan(8)
    const parcelId = await parcelIdOf('GONE0001')

    const report = await forget('GONE0002')
    expect(await tablesThatHold(path, words)).toEqual([])
    expect(report.removed).toMatchObject({ parcels: 1, identifiers: 2, sightings: 2, answers: 1, pushes: 3, attempts: 1, mentions: 1 })
    expect(report.removed.texts).toBeGreaterThan(0)
    expect(report).toMatchObject({ dryRun: false, unreadable: 0, endpoints: [{ id, name: expect.any(String) }], backups: ['nightly'] })
    expect(await storedNumber(path, 'select count(*) from delivery where parcel_id = ?', parcelId)).toBe(0)
    expect(await parcelIdOf('KEPT0001')).toBeGreaterThan(0)
    if (engine.name !== sqlite.name) return expect(report.storage.state).toBe('pending')
    await vi.waitFor(async () => expect((await forget('GONE0002')).storage).toEqual({ state: 'clean' }))
    expect(filesThatHold(path, words)).toEqual([])
  })

  test('an event composed for endpoints is erased with its parcel, even if its delivery is gone', async () => {
    const { path, writes, poll, forget } = await open(engine)
    await addEndpoint(writes, NOON, { backfill: true })
    const statuses = [{ status: 'Created', detailedStatusDescription: 'PLANTEDPOLL', eventTimestamp: at(5) }]
    for (const asked of ['GONE0001', 'KEPT0001']) await poll({ asked, trackingIds: [asked], statuses })
    const composed = () => storedNumber(path, 'select count(*) from composed_event')
    expect(await composed()).toBe(2)
    // Retention removes ended deliveries.
    await changeStoredRows(path, 'delete from delivery')
    await forget('GONE0001')
    expect(await tablesThatHold(path, ['GONE0001'])).toEqual([])
    expect(await composed()).toBe(1)
  })

  test('a dry run says what would be erased, and changes nothing', async () => {
    const { path, push, forget, erased } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    const planned = await forget('GONE0001', true)
    expect(planned).toMatchObject({ dryRun: true, removed: { parcels: 1, identifiers: 1, pushes: 1 } })
    expect(await storedNumber(path, 'select count(*) from parcel')).toBe(1)
    expect(await storedNumber(path, 'select count(*) from tombstone')).toBe(0)
    expect(erased).toEqual([])
    expect((await forget('GONE0001')).removed).toEqual(planned.removed)
    expect(erased).toEqual([1])
  })

  test('1.7: a push of erased and unknown identifiers is not stored, and erases the unknown ones', async () => {
    const { path, push, forget } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await forget('GONE0001')
    expect((await push({ trackingIds: ['GONE0001', 'GONE0003'], eventTime: at(2) })).outcomes).toEqual([{ kind: 'erased' }])
    expect((await push({ trackingIds: ['GONE0003'], eventTime: at(3) })).outcomes).toEqual([{ kind: 'erased' }])
    expect(await storedNumber(path, 'select count(*) from inbox')).toBe(0)
    expect(await storedNumber(path, 'select count(*) from parcel')).toBe(0)
  })

  test('an erased identifier is not added to the living parcel that the same push names', async () => {
    const { push, forget, reads } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await push({ trackingIds: ['LIVE0001'], eventTime: at(1) })
    await forget('GONE0001')
    const both = { trackingIds: ['LIVE0001', 'GONE0001'], eventTime: at(2) }
    expect((await push(both)).outcomes).toMatchObject([{ kind: 'recorded' }])
    expect((await push(both)).outcomes).toEqual([{ kind: 'duplicate' }])
    expect((await reads.findParcel('LIVE0001'))?.entries).toHaveLength(2)
    expect(await reads.findParcel('GONE0001')).toBeNull()
  })

  test('an answer is dropped if its parcel was erased while the carrier was asked', async () => {
    const { push, poll, forget, reads } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await forget('GONE0001')
    const late = await poll({ asked: 'GONE0001', trackingIds: ['GONE0001'], statuses: [{ status: 'Created', eventTimestamp: at(2) }] })
    expect(late.outcomes).toEqual([{ kind: 'erased' }])
    expect(await reads.findParcel('GONE0001')).toBeNull()
  })

  test('the result of an attempt is dropped if its parcel was erased during the attempt', async () => {
    const { path, writes, push, forget } = await open(engine)
    await addEndpoint(writes, NOON)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    const [delivery] = (await writes.dispatchRound(claim)).claimed
    if (delivery === undefined) throw new Error('nothing was claimed')
    await forget('GONE0001')
    const result = {
      kind: 'rejected',
      status: 500,
      answerStart: Buffer.from('GONE0001 is unknown'),
      durationMs: 1,
      retryAfterMs: null,
    } as const
    await writes.dispatchRound({ ...claim, settled: [{ ...delivery, atMs: NOON, random: 0, result }] })
    expect(await tablesThatHold(path, ['GONE0001'])).toEqual([])
    expect(await storedNumber(path, 'select count(*) from attempt')).toBe(0)
  })

  test('a delivery that was claimed before its parcel was erased is not sent', async () => {
    const { writes, push, forget } = await open(engine)
    const { id } = await addEndpoint(writes, NOON)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    const [delivery] = (await writes.dispatchRound(claim)).claimed
    if (delivery === undefined) throw new Error('nothing was claimed')
    await forget('GONE0001')
    const { overtaken } = await writes.dispatchRound({ ...claim, inFlight: { [id]: [delivery.deliveryId] } })
    expect(overtaken).toEqual([{ endpointId: id, deliveryId: delivery.deliveryId }])
  })

  test('an event after the reuse time creates a new parcel', async () => {
    const { push, forget, parcelIdOf, pass } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    const before = await parcelIdOf('GONE0001')
    await forget('GONE0001')
    pass(181 * DAY_MS)
    const later = at((181 * DAY_MS) / 1000)
    expect((await push({ trackingIds: ['GONE0001'], eventTime: later })).outcomes).toMatchObject([{ kind: 'recorded' }])
    expect(await parcelIdOf('GONE0001')).toBeGreaterThan(before)
    expect((await push({ trackingIds: ['GONE0001'], eventTime: at(9) })).outcomes).toEqual([{ kind: 'erased' }])
  })

  test('a new identifierReuseAfter applies at once, and null refuses an identifier forever', async () => {
    const { writes, push, forget, pass } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await forget('GONE0001')
    await writes.adjustErasure({ identifierReuseAfterMs: null })
    pass(300 * DAY_MS)
    expect((await push({ trackingIds: ['GONE0001'], eventTime: at((300 * DAY_MS) / 1000) })).outcomes).toEqual([{ kind: 'erased' }])
    await writes.adjustErasure({ identifierReuseAfterMs: DAY_MS })
    expect((await push({ trackingIds: ['GONE0001'], eventTime: at((299 * DAY_MS) / 1000) })).outcomes).toMatchObject([{ kind: 'recorded' }])
  })

  test('the feed reports an erasure with the id of the parcel, and nothing else about it', async () => {
    const { push, forget, reads, parcelIdOf } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    const id = await parcelIdOf('GONE0001')
    await forget('GONE0001')
    const { items } = await reads.readFeed({ after: 0, limit: 10 })
    expect(items.map(encodeFeedItem)).toEqual([`{"sequence":2,"kind":"erased","parcel":{"id":"${id}"}}`])
  })

  test('an erased identifier cannot be watched, and a list of identifiers to watch skips it', async () => {
    const { writes, reads, push, forget, now } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await forget('GONE0001')
    expect(await writes.watch({ identifier: 'GONE0001', nowMs: now() })).toBeNull()
    expect(await writes.watchMany({ identifiers: ['NEW00009', 'GONE0001'], nowMs: now(), isAtomic: true })).toEqual([null, null])
    expect(await reads.findParcel('NEW00009')).toBeNull()
    const identifiers = ['NEW00001', 'GONE0001']
    expect(await writes.watchMany({ identifiers, nowMs: now() })).toMatchObject([{ created: true }, null])
    expect(await writes.erasedAtMs({ identifier: 'GONE0001', nowMs: now() })).toBe(NOON)
    expect(await writes.erasedAtMs({ identifier: 'NEW00001', nowMs: now() })).toBeNull()
  })

  test('joined parcels are erased as one, with the record of the join in the audit trail', async () => {
    const { path, push, forget } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await push({ trackingIds: ['GONE0002'], eventTime: at(2) })
    await push({ trackingIds: ['GONE0003'], eventTime: at(2) })
    await push({ trackingIds: ['GONE0003', 'GONE0002'], eventTime: at(3) })
    await push({ trackingIds: ['GONE0001', 'GONE0002'], eventTime: at(4) })
    expect(await tablesThatHold(path, ['GONE0003'])).toContain('audit: GONE0003')
    expect((await forget('GONE0003')).removed).toMatchObject({ parcels: 1, identifiers: 3 })
    expect(await tablesThatHold(path, ['GONE000'])).toEqual([])
  })

  test('a text of another parcel is kept, and an erased text can be stored again', async () => {
    const { push, forget, reads } = await open(engine)
    const shared = { texts: { en: 'On its way' }, eventTime: at(1) }
    await push({ trackingIds: ['GONE0001'], ...shared })
    await push({ trackingIds: ['KEPT0001'], ...shared })
    await push({ trackingIds: ['GONE0001'], texts: { en: 'Only this one' }, eventTime: at(2) })
    expect((await forget('GONE0001')).removed.texts).toBe(1)
    await push({ trackingIds: ['KEPT0002'], texts: { en: 'Only this one' }, eventTime: at(2) })
    expect((await reads.findParcel('KEPT0001'))?.entries).toHaveLength(1)
    expect(JSON.stringify((await reads.findParcel('KEPT0002'))?.entries)).toContain('Only this one')
  })

  test('an identifier that only quarantined pushes name is erased, and leaves a tombstone', async () => {
    const { path, record, push, forget } = await open(engine)
    const broken = Buffer.from(JSON.stringify({ trackingIds: ['\u0047ONE0009'] }).replace('GONE0009', '\\u0047ONE0009'))
    await record(parsePush({ body: broken, contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 }))
    await record(parsePush({ body: Buffer.from('?'), contentEncoding: 'zstd', receivedAtMs: NOON, keyIndex: 0 }))
    expect(await forget('GONE0009')).toMatchObject({ removed: { parcels: 0, pushes: 1 }, unreadable: 1 })
    expect(await storedNumber(path, 'select count(*) from inbox')).toBe(1)
    expect((await push({ trackingIds: ['GONE0009'], eventTime: at(1) })).outcomes).toEqual([{ kind: 'erased' }])
  })

  test('erasing an unknown identifier is refused; erasing an erased one searches for it again', async () => {
    const { push, forget } = await open(engine)
    await expect(forget('NEVER001')).rejects.toMatchObject({ code: 'not_found' })
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await forget('GONE0001')
    expect((await forget('GONE0001')).removed).toMatchObject({ parcels: 0, pushes: 0 })
  })

  test('a list erases many parcels, and reports bad and unknown lines by number', async () => {
    const { record, erasures, path } = await open(engine)
    const names = Array.from({ length: 45 }, (_, nth) => `GONE${1000 + nth}`)
    await record(...names.map((name) => incomingPush(pushBody({ trackingIds: [name], eventTime: at(1) }), NOON)))
    async function* lines() {
      for (const name of names) yield JSON.stringify(name)
      yield '"NEVER001"'
      yield 'no JSON'
    }
    const report = await erasures.forgetList({ format: 'ndjson', column: null, dryRun: false, lines: lines(), by: OPERATOR })
    expect(report).toMatchObject({ lines: 47, erased: 45, unknown: 1, failed: 1, removed: { parcels: 45 } })
    expect(report.errors).toEqual([
      { line: 46, reason: 'holds an identifier that no parcel has' },
      { line: 47, reason: 'is not valid JSON' },
    ])
    expect(await storedNumber(path, 'select count(*) from parcel')).toBe(0)
  })

  test('the audit trail says who erased how many parcels, but not which', async () => {
    const { push, forget, reads } = await open(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await forget('GONE0001')
    const { actions } = await reads.listActions({ before: null, limit: 10 })
    expect(actions).toMatchObject([{ action: 'parcels.erased', by: OPERATOR, target: null, detail: { identifiers: 1, parcels: 1 } }])
  })

  test('receipt and audit trail have the same marks, and a repeated order says when it was erased', async () => {
    const { path, push, forget, forgetList, reads, pass } = await open(engine)
    await push({ trackingIds: ['GONE0001', 'GONE0002'], eventTime: at(1) })
    await push({ trackingIds: ['GONE0003'], eventTime: at(1) })
    const first = await forget('GONE0001')
    const marks = [expect.stringMatching(/^[\w-]{43}$/), expect.stringMatching(/^[\w-]{43}$/)]
    expect(first).toMatchObject({ by: OPERATOR, atMs: NOON, relay: expect.stringMatching(/^[0-9a-f]+$/) })
    expect(first.receipts).toEqual([{ identifier: 'GONE0001', outcome: 'erased', parcelId: expect.any(Number), erasedAtMs: NOON, marks }])
    pass(60_000)
    const again = await forgetList(['GONE0002', 'GONE0003'])
    const [second = '', third = ''] = again.receipts.flatMap((receipt) => receipt.marks)
    expect(again.receipts).toMatchObject([
      { outcome: 'erased_before', erasedAtMs: NOON },
      { outcome: 'erased', erasedAtMs: NOON + 60_000 },
    ])
    expect(first.receipts[0]?.marks).toContain(second)
    expect((await forget('GONE0001', true)).receipts).toMatchObject([{ outcome: 'erased_before', erasedAtMs: NOON }])
    const { actions } = await reads.listActions({ before: null, limit: 10 })
    expect(actions.map(({ detail }) => detail)).toMatchObject([
      { identifiers: 1, parcels: 1, erasedBefore: 1, marks: [second, third], removed: { parcels: 1, pushes: 1 }, endpoints: [] },
      { identifiers: 2, parcels: 1, erasedBefore: 0, marks: first.receipts[0]?.marks },
    ])
    expect(await tablesThatHold(path, ['GONE0001', 'GONE0002', 'GONE0003'])).toEqual([])
  })
})

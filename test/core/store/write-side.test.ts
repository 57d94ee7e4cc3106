import { describe, expect, test } from 'vitest'
import { parseAllAnswer } from '../../../src/core/domain/history/pull-response.ts'
import { answerBody, pushBody } from '../../support/history/builders.ts'
import { recordOptions } from '../../support/history/policy.ts'
import { inboxIn } from '../../support/relay/inbox.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { storedNumber, storedRows } from '../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

const GRACE_MS = recordOptions.missedPushGraceMs

describe.each(engines)('the write side on $name', (engine) => {
  test('1.3: a push whose ids are all unknown creates a new parcel', async () => {
    const { push, reads } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'] })
    await push({ trackingIds: ['2001'] })
    const [one, two] = [await reads.findParcel('1001'), await reads.findParcel('2001')]
    expect(one?.parcelId).not.toBe(two?.parcelId)
    expect([one?.entries.length, two?.entries.length]).toEqual([1, 1])
  })

  test('1.4: an observation that names ids of two parcels makes them one, and the join is audited', async () => {
    const { push, poll, reads, path } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'] })
    await push({ trackingIds: ['2001'], eventTime: '2026-03-01T11:00:00.000Z' })
    const older = await reads.findParcel('1001')
    await poll({ asked: 'AB123456789SE', trackingIds: ['1001', '2001'], statuses: [] })
    for (const id of ['1001', '2001', 'AB123456789SE']) {
      const view = await reads.findParcel(id)
      expect([view?.parcelId, view?.entries.length, view?.watched]).toEqual([older?.parcelId, 2, true])
    }
    const audit = await storedRows<{ kind: string; parcel_id: number; detail: string }>(path, 'select kind, parcel_id, detail from audit')
    expect(audit.map((row) => [row.kind, row.parcel_id])).toEqual([['join', older?.parcelId]])
    expect(JSON.parse(audit[0]?.detail ?? '')).toMatchObject({
      // The audit trail keeps the field names that existing stores have.
      from: { revivedAtMs: NOON, heardAtMs: NOON },
      identifiers: ['2001'],
      sightings: [[expect.any(String), 0, expect.any(Number), 1, NOON]],
    })
    expect(await storedNumber(path, 'select count(*) from feed where kind = 4')).toBe(1)
  })

  test('1.6: a push to a parcel with 2,000 entries is quarantined, and the parcel is marked full', async () => {
    const { record, push, reads, path } = await openStore(NOON, engine)
    const statuses = Array.from({ length: 2000 }, (_, at) => ({ eventTimestamp: new Date(NOON - at * 1000).toISOString() }))
    const reading = parseAllAnswer(answerBody({ statuses }), {
      asked: 'AB123456789SE',
      language: 'en',
      contentLanguage: null,
      askedAtMs: NOON,
    })
    if (!reading.ok) throw new Error(reading.reason)
    await record({ kind: 'poll', observation: reading.observation, watch: true })
    const { outcomes } = await push({ eventTime: '2026-02-01T00:00:00.000Z' })
    expect(outcomes).toEqual([{ kind: 'quarantined', reason: 'parcel_full' }])
    expect((await reads.findParcel('1001'))?.entries).toHaveLength(2000)
    expect(await storedRows(path, 'select is_full from parcel')).toEqual([{ is_full: 1 }])
    expect(await storedRows(path, 'select reason from inbox')).toEqual([{ reason: 'parcel_full' }])
  })

  test('if one observation of a batch is quarantined, the others are recorded', async () => {
    const { record, reads, push } = await openStore(NOON, engine)
    const statuses = Array.from({ length: 2000 }, (_, at) => ({ eventTimestamp: new Date(NOON - at * 1000).toISOString() }))
    const reading = parseAllAnswer(answerBody({ statuses }), { asked: '1001', language: 'en', contentLanguage: null, askedAtMs: NOON })
    if (!reading.ok) throw new Error(reading.reason)
    await record({ kind: 'poll', observation: reading.observation, watch: true })
    const before = incomingPush(pushBody({ trackingIds: ['2001'] }), NOON)
    const full = incomingPush(pushBody({ trackingIds: ['1001'], eventTime: '2026-02-01T00:00:00.000Z' }), NOON)
    const after = incomingPush(pushBody({ trackingIds: ['3001'] }), NOON)
    const { outcomes } = await record(before, full, after)
    expect(outcomes.map(({ kind }) => kind)).toEqual(['recorded', 'quarantined', 'recorded'])
    expect([(await reads.findParcel('2001'))?.entries.length, (await reads.findParcel('3001'))?.entries.length]).toEqual([1, 1])
    expect((await push({ trackingIds: ['2001'] })).outcomes).toEqual([{ kind: 'duplicate' }])
  })

  test('5.4: a repeated push is a duplicate after 365 days, and expired after 401 days', async () => {
    const { push, pass, reads } = await openStore(NOON, engine)
    await push()
    pass(365 * DAY_MS)
    expect((await push()).outcomes).toEqual([{ kind: 'duplicate' }])
    pass(36 * DAY_MS)
    expect((await push()).outcomes).toEqual([{ kind: 'expired' }])
    expect((await reads.findParcel('1001'))?.lastSeenAtMs).toBe(NOON)
  })

  test('5.4: a push that is too old only by a wrong clock is recorded when it is repeated', async () => {
    const { push, pass, reads, path } = await openStore(NOON, engine)
    pass(3650 * DAY_MS)
    for (let times = 0; times < 2; times++) expect((await push()).outcomes).toEqual([{ kind: 'expired' }])
    expect(await reads.findParcel('1001')).toBeNull()
    const inbox = inboxIn(path)
    expect(await inbox.rowOf(pushBody())).toMatchObject({ state: 'expired', reason: null, parcelId: null, duplicates: 1 })
    pass(-3650 * DAY_MS)
    expect((await push()).outcomes).toMatchObject([{ kind: 'recorded', newEntries: 1 }])
    expect((await push()).outcomes).toEqual([{ kind: 'duplicate' }])
    expect((await reads.findParcel('1001'))?.entries).toHaveLength(1)
    const rows = await inbox.rowsOf(pushBody())
    expect(rows.map(({ state }) => state).toSorted()).toEqual(['expired', 'recorded'])
  })

  test('6.1: a push makes a parcel watched, and due after the interval of its status', async () => {
    const { push, writes, now, parcelIdOf } = await openStore(NOON, engine)
    await push()
    const claim = (nowMs: number) => writes.claimDuePolls({ nowMs, limit: 10, leaseMs: 1000 })
    expect(await claim(now() + HOUR_MS - 1)).toEqual([])
    expect(await claim(now() + 2 * HOUR_MS)).toEqual([{ parcelId: await parcelIdOf('1001'), identifiers: ['1001'] }])
  })

  test('a claimed poll cannot be claimed again until its lease expires', async () => {
    const { push, writes, now } = await openStore(NOON, engine)
    await push()
    const claim = (nowMs: number) => writes.claimDuePolls({ nowMs, limit: 10, leaseMs: 60_000 })
    const due = now() + 2 * HOUR_MS
    expect([(await claim(due)).length, (await claim(due)).length, (await claim(due + 60_001)).length]).toEqual([1, 0, 1])
  })

  test('a parcel with a running poll is skipped, and is due again when the poll has ended', async () => {
    const { push, poll, writes, now, parcelIdOf } = await openStore(NOON, engine)
    await push()
    const claim = async (nowMs: number, underWay: readonly number[]) =>
      (await writes.claimDuePolls({ nowMs, limit: 10, leaseMs: DAY_MS, underWay })).length
    expect(await claim(now() + 2 * HOUR_MS, [])).toBe(1)
    await poll()
    expect(await claim(now() + 4 * HOUR_MS, [await parcelIdOf('1001')])).toBe(0)
    expect(await claim(now() + 4 * HOUR_MS + 1, [])).toBe(1)
  })

  test('6.3: a poll tries the tracking number first, and skips ids unknown to the carrier', async () => {
    const { push, poll, writes, pass } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001', '1002'] })
    await poll({ asked: 'AB123456789SE', trackingIds: ['1001', '1002'] })
    await writes.noteNotPollable('1001')
    const [due] = await writes.claimDuePolls({ nowMs: pass(2 * HOUR_MS), limit: 1, leaseMs: 1 })
    expect(due?.identifiers).toEqual(['AB123456789SE', '1002'])
  })

  /** Opens a store with a parcel that was pushed at NOON, and that the carrier did not know when it was polled an hour later. */
  async function openUnknown() {
    const store = await openStore(NOON, engine)
    const { push, writes, reads, pass, parcelIdOf, now } = store
    await push({ trackingIds: ['1001'] })
    const parcelId = await parcelIdOf('1001')
    const refuse = async () => {
      await writes.noteNotPollable('1001')
      await writes.notePollFailure({ parcelId, kind: 'unknown', atMs: now() })
    }
    pass(HOUR_MS)
    await refuse()
    const state = async () => (await reads.inspectParcel('1001'))?.state ?? expect.fail('the parcel is gone')
    const claim = async () => await writes.claimDuePolls({ nowMs: now(), limit: 1, leaseMs: 1 })
    return { ...store, parcelId, refuse, state, claim }
  }

  test('6.3: a parcel is not polled if the carrier knows none of its ids, until it gets a new id', async () => {
    const { push, state } = await openUnknown()
    expect(await state()).toMatchObject({ stopped: 'unknown', nextPollAtMs: null })
    await push({ trackingIds: ['1001', '1002'], eventTime: '2026-03-01T11:30:00.000Z' })
    expect((await state()).nextPollAtMs).not.toBeNull()
  })

  test('6.1: a push of a parcel that the carrier did not know allows one more poll', async () => {
    const { push, state, claim, pass, refuse, parcelId } = await openUnknown()
    pass(MINUTE_MS)
    await push({ trackingIds: ['1001'], eventTime: '2026-03-01T13:00:30.000Z' })
    const dueMs = (await state()).nextPollAtMs ?? expect.fail('it is not polled')
    expect(dueMs).toBeLessThan(NOON + 5 * HOUR_MS)
    pass(dueMs - (NOON + HOUR_MS + MINUTE_MS) - 1)
    expect(await claim()).toEqual([])
    pass(1)
    expect(await claim()).toEqual([{ parcelId, identifiers: ['1001'] }])
    pass(1)
    await refuse()
    expect(await state()).toMatchObject({ stopped: 'unknown', nextPollAtMs: null })
  })

  test('6.1, 6.3: a parcel that the carrier did not know is polled after a day if it is watched', async () => {
    const { writes, state, claim, pass, now, refuse, parcelId } = await openUnknown()
    const endMs = now() + DAY_MS
    pass(MINUTE_MS)
    await writes.watch({ identifier: '1001', nowMs: now() })
    expect(await state()).toMatchObject({ stopped: 'unknown', nextPollAtMs: endMs })
    pass(DAY_MS - MINUTE_MS - 1)
    expect(await claim()).toEqual([])
    pass(1)
    expect(await claim()).toEqual([{ parcelId, identifiers: ['1001'] }])
    await refuse()
    expect(await state()).toMatchObject({ stopped: 'unknown', nextPollAtMs: null })
  })

  test('6.3: on an operator’s order, a parcel that the carrier did not know is polled at once', async () => {
    const { writes, now, parcelId } = await openUnknown()
    expect(await writes.claimPoll({ identifier: '1001', nowMs: now(), leaseMs: 1 })).toEqual({ parcelId, identifiers: ['1001'] })
  })

  test('P6: an identifier watched before the carrier knows it continues to be polled', async () => {
    const { writes, pass, parcelIdOf } = await openStore(NOON, engine)
    await writes.watch({ identifier: 'AB123456789SE', nowMs: NOON })
    await writes.noteNotPollable('AB123456789SE')
    await writes.notePollFailure({ parcelId: await parcelIdOf('AB123456789SE'), kind: 'unknown', atMs: pass(HOUR_MS) })
    expect(await writes.claimDuePolls({ nowMs: pass(2 * HOUR_MS), limit: 1, leaseMs: 1 })).toEqual([
      { parcelId: await parcelIdOf('AB123456789SE'), identifiers: ['AB123456789SE'] },
    ])
  })

  test('P5: a carrier that says when to ask again is not asked earlier', async () => {
    const { push, writes, pass, now, parcelIdOf } = await openStore(NOON, engine)
    await push()
    await writes.notePollFailure({ parcelId: await parcelIdOf('1001'), kind: 'unavailable', atMs: now(), retryAfterMs: 3 * HOUR_MS })
    expect(await writes.claimDuePolls({ nowMs: pass(3 * HOUR_MS - 1), limit: 1, leaseMs: 1 })).toEqual([])
    expect(await writes.claimDuePolls({ nowMs: pass(1), limit: 1, leaseMs: 1 })).toHaveLength(1)
  })

  test('6.6: an entry found by a poll is a missed push if no push brings it in the grace period', async () => {
    const { push, poll, writes, pass, parcelIdOf } = await openStore(NOON, engine)
    await push()
    pass(HOUR_MS)
    const found = { eventTimestamp: '2026-03-01T12:30:00Z' }
    await poll({ statuses: [found] })
    expect(await writes.settleMissedPushes(pass(GRACE_MS - 1))).toEqual([])
    expect(await writes.settleMissedPushes(pass(1))).toEqual([
      { parcelId: await parcelIdOf('1001'), identifier: 'AB123456789SE', eventAtMs: NOON + HOUR_MS / 2, foundAtMs: NOON + HOUR_MS },
    ])
    expect(await writes.settleMissedPushes(pass(DAY_MS))).toEqual([])
  })

  test('6.6: a push that comes within the grace period was not missed', async () => {
    const { push, poll, writes, pass } = await openStore(NOON, engine)
    await push()
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T12:30:00Z' }] })
    await push({ eventTime: '2026-03-01T12:30:00.400Z' })
    expect(await writes.settleMissedPushes(pass(GRACE_MS))).toEqual([])
  })

  test('6.6: of equal entries of which a push came, none is a missed push, because equal pushes collapse', async () => {
    const { push, poll, writes, pass } = await openStore(NOON, engine)
    await push()
    pass(HOUR_MS)
    const [twice, once] = [{ eventTimestamp: '2026-03-01T12:30:00Z' }, { eventTimestamp: '2026-03-01T12:40:00Z' }]
    await push({ eventTime: '2026-03-01T12:30:00.000Z' })
    await push({ eventTime: '2026-03-01T12:30:00.000Z' })
    await poll({ statuses: [once, twice, twice, twice] })
    expect(await writes.settleMissedPushes(pass(GRACE_MS))).toMatchObject([{ eventAtMs: Date.parse(once.eventTimestamp) }])
  })

  test('6.6: an event from before the relay knew the parcel is backfill, not a missed push', async () => {
    const { poll, writes, pass } = await openStore(NOON, engine)
    await poll({ statuses: [{ eventTimestamp: '2026-03-01T09:00:00Z' }] })
    expect(await writes.settleMissedPushes(pass(DAY_MS))).toEqual([])
  })

  test('4.2: a fetched language is complete until a newer entry lacks it', async () => {
    const { push, writes, reads, parcelIdOf } = await openStore(NOON, engine)
    await push({ texts: { en: 'Arrived' } })
    expect((await reads.findParcel('1001'))?.languagesAsked).toEqual([])
    await writes.noteLanguageAsked({ parcelId: await parcelIdOf('1001'), language: 'sv', knownTo: 1, answer: null })
    expect((await reads.findParcel('1001'))?.languagesAsked).toEqual(['sv'])
    await push({ texts: { en: 'Gone' }, eventTime: '2026-03-01T11:00:00.000Z' })
    expect((await reads.findParcel('1001'))?.languagesAsked).toEqual([])
  })

  test('6.7: an answer with invalid items is stored raw, and changes no known data', async () => {
    const { poll, reads, path } = await openStore(NOON, engine)
    await poll({ statuses: [{}, { eventTimestamp: 'never' }] })
    await poll({ askedAtMs: NOON + 1, statuses: [{ eventTimestamp: 'never' }] })
    expect((await reads.findParcel('1001'))?.entries).toHaveLength(1)
    const answers = await storedRows<{ is_flawed: number; body: Buffer }>(path, 'select is_flawed, body from answer')
    expect(answers.map(({ is_flawed, body }) => [is_flawed, body.includes('never')])).toEqual([
      [1, true],
      [1, true],
    ])
  })

  test('the secret that signs tokens is created once, and then stored', async () => {
    const { writes } = await openStore(NOON, engine)
    const keys = await writes.tokenKeys()
    expect([Buffer.from(keys.current).length, keys.previous]).toEqual([32, []])
    expect(await writes.tokenKeys()).toEqual(keys)
  })
})

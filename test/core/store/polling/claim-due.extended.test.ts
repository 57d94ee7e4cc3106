import { describe, expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import { createRefresh } from '../../../../src/core/flow/polling/refresh.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

/** SQL for an offset of less than ten seconds that differs from parcel to parcel. */
const APART = 'id % 9973'

const iso = (atMs: number) => new Date(atMs).toISOString()
const named = (at: number) => `CD${String(at).padStart(6, '0')}`

async function nextCheckOf({ reads }: Awaited<ReturnType<typeof openStore>>, identifier: string) {
  return (await reads.inspectParcel(identifier))?.state.nextPollAtMs
}

describe.each(engines)('claims of due polls on $name', (engine) => {
  test('a due check is put off without a call if a push came after it was planned', async () => {
    const store = await openStore(NOON, engine)
    const { writes, push, pass } = store
    await push({ trackingIds: ['1001'] })
    const planned = (await nextCheckOf(store, '1001')) ?? 0
    pass(30 * MINUTE_MS)
    await push({ trackingIds: ['1001'], eventTime: iso(NOON + 30 * MINUTE_MS) })
    expect(await nextCheckOf(store, '1001')).toBe(planned)
    const claimAt = (nowMs: number) => writes.claimDuePolls({ nowMs, limit: 4, leaseMs: MINUTE_MS })
    expect(await claimAt(pass(planned + 1 - NOON - 30 * MINUTE_MS))).toEqual([])
    const putOff = (await nextCheckOf(store, '1001')) ?? 0
    expect(putOff).toBeGreaterThan(planned + 20 * MINUTE_MS)
    expect(await claimAt(putOff + 1)).toHaveLength(1)
  })

  test('a parcel without a push since its last check is polled as planned', async () => {
    const { writes, poll, path, pass } = await openStore(NOON, engine)
    await poll({ asked: named(1), trackingIds: ['1001'] })
    await changeStoredRows(path, 'UPDATE parcel SET next_poll_at_ms = ?', NOON + MINUTE_MS)
    expect(await writes.claimDuePolls({ nowMs: pass(2 * MINUTE_MS), limit: 4, leaseMs: MINUTE_MS })).toHaveLength(1)
  })

  test('P13: a push received while the clock was ahead does not put the check off to a wrong time', async () => {
    const { writes, push, path, pass } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'], eventTime: iso(NOON) })
    await changeStoredRows(path, 'UPDATE parcel SET next_poll_at_ms = ?', NOON - 23 * HOUR_MS)
    expect(await writes.claimDuePolls({ nowMs: pass(-22 * HOUR_MS), limit: 4, leaseMs: MINUTE_MS })).toHaveLength(1)
  })

  test('one claim skips the checks that it puts off, and returns the one that is due', async () => {
    const { writes, path, pass } = await openStore(NOON, engine)
    const pushed = Array.from({ length: 600 }, (_, at) => pushBody({ trackingIds: [String(2000 + at)], eventTime: iso(NOON) }))
    await writes.record(pushed.map((body) => incomingPush(body, NOON)))
    await writes.watch({ identifier: named(1), nowMs: NOON })
    await changeStoredRows(path, `UPDATE parcel SET next_poll_at_ms = ? + ${APART}`, NOON + MINUTE_MS)
    const claim = async () => await writes.claimDuePolls({ nowMs: NOON + 5 * MINUTE_MS, limit: 1, leaseMs: MINUTE_MS })
    pass(5 * MINUTE_MS)
    expect((await claim()).map(({ identifiers }) => identifiers)).toEqual([[named(1)]])
    expect(await claim()).toEqual([])
  })

  test('a claim ends with its poll, and a failed poll is due again after a minute', async () => {
    const { writes, push, poll, pass, parcelIdOf } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'] })
    const claim = (nowMs: number) => writes.claimDuePolls({ nowMs, limit: 4, leaseMs: 24 * HOUR_MS })
    expect(await claim(pass(2 * HOUR_MS))).toHaveLength(1)
    await writes.notePollFailure({ parcelId: await parcelIdOf('1001'), kind: 'unavailable', atMs: NOON + 2 * HOUR_MS })
    expect(await claim(pass(2 * MINUTE_MS))).toHaveLength(1)
    await poll({ asked: '1001', trackingIds: ['1001'] })
    expect(await claim(pass(2 * HOUR_MS))).toHaveLength(1)
  })

  test('P12: a parcel whose poll was interrupted by a kill is due at once after the restart', async () => {
    const { path, push, writes, pass } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'] })
    const nowMs = pass(2 * HOUR_MS)
    const claim = { nowMs, limit: 4, leaseMs: HOUR_MS }
    expect([(await writes.claimDuePolls(claim)).length, (await writes.claimDuePolls(claim)).length]).toEqual([1, 0])
    await writes.close()
    const clock = { now: () => nowMs, monotonic: () => 0 }
    const again = await openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, console)
    expect(await again.claimDuePolls(claim)).toHaveLength(1)
    await again.close()
  })

  test('after a restore, only pushes that came after it put off polls', async () => {
    const { path, push, writes, pass } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'] })
    await writes.close()
    const nowMs = pass(MINUTE_MS)
    const restored = { backup: 'first', madeAtMs: NOON, atMs: nowMs, from: 1, to: 1e9, delivered: 0, isTold: true }
    await changeStoredRows(path, 'INSERT INTO setting (name, value) VALUES (?, ?)', 'restores', Buffer.from(JSON.stringify([restored])))
    const clock = { now: () => nowMs + 1, monotonic: () => 0 }
    const again = await openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, console)
    await again.record([incomingPush(pushBody({ trackingIds: ['1002'], eventTime: iso(nowMs) }), nowMs + 1)])
    await changeStoredRows(path, 'UPDATE parcel SET next_poll_at_ms = ?', nowMs)
    const polls = await again.claimDuePolls({ nowMs: nowMs + 1, limit: 4, leaseMs: MINUTE_MS })
    expect(polls.map(({ identifiers }) => identifiers)).toEqual([['1001']])
    await again.close()
  })

  test('a parcel whose answers are quarantined is polled at its usual interval', async () => {
    const { writes, reads, pass, now } = await openStore(NOON, engine)
    await writes.watch({ identifier: named(1), nowMs: NOON })
    const refresh = createRefresh(
      {
        carrier: { fetchAll: async () => ({ kind: 'found', observation: aPoll({ asked: named(1) }) }) },
        recorder: { submit: async () => ({ kind: 'quarantined', reason: 'parcel_full' }) },
        reads,
        write: writes,
        meter: { pollEnded: () => undefined },
        clock: { now, monotonic: now },
      },
      { languages: ['en'] },
    )
    let asked = 0
    for (let turn = 0; turn < 24 * 12; turn++) {
      for (const due of await writes.claimDuePolls({ nowMs: pass(5 * MINUTE_MS), limit: 4, leaseMs: 4 * MINUTE_MS })) {
        asked += 1
        await refresh.poll(due)
      }
    }
    // A few tries come soon after the first, and then one about every hour.
    expect(asked).toBeLessThan(40)
    expect(asked).toBeGreaterThan(20)
  })

  test('P13: a lease is shortened when the clock is put back', async () => {
    const { writes, push, pass, now } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'] })
    const claim = async () => (await writes.claimDuePolls({ nowMs: now(), limit: 4, leaseMs: 5 * MINUTE_MS })).length
    pass(2 * HOUR_MS)
    expect([await claim(), await claim()]).toEqual([1, 0])
    const nowMs = pass(-12 * HOUR_MS)
    await writes.shiftSchedule({ byMs: 12 * HOUR_MS, sinceMs: nowMs, nowMs, afterParcelId: 0, limit: 10 })
    expect(await claim()).toBe(0)
    // The push now counts as received at the moment the clock was put back, so the parcel is due after one interval at most.
    pass(2 * HOUR_MS)
    expect(await claim()).toBe(1)
  })
})

import { describe, expect, test } from 'vitest'
import { keysAt, rotateKeys, shiftKeys } from '../../../../src/core/domain/delivery/endpoint-keys.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const iso = (atMs: number) => new Date(atMs).toISOString()

describe.each(engines)('a store whose clock is put back by an hour, on $name', (engine) => {
  async function world() {
    const store = await openStore(NOON, engine)
    const stateOf = async (id: string) => {
      const found = await store.reads.inspectParcel(id)
      if (found === null) throw new Error(`no parcel has the identifier ${id}`)
      return found.state
    }
    /** Puts the clock back by an hour, runs `meanwhile`, and then lets the relay notice the jump. */
    const putBack = async (meanwhile = async () => {}) => {
      const sinceMs = store.pass(-HOUR_MS)
      await meanwhile()
      const nowMs = store.now()
      await store.writes.shiftSchedule({ byMs: HOUR_MS, sinceMs, nowMs, afterParcelId: 0, limit: 500 })
      return nowMs
    }
    return { ...store, stateOf, putBack }
  }

  test('P13: times of a parcel that lie in the future move to now, and its next check moves too', async () => {
    const { poll, push, stateOf, putBack } = await world()
    await push({ trackingIds: ['1001'], eventTime: iso(NOON - MINUTE_MS) })
    await poll({ asked: '1001', trackingIds: ['1001'], statuses: [{ eventTimestamp: iso(NOON - MINUTE_MS) }] })
    const before = await stateOf('1001')
    const nowMs = await putBack()
    expect(await stateOf('1001')).toMatchObject({
      lastSeenAtMs: nowMs,
      checkedAtMs: nowMs,
      watchedAtMs: nowMs,
      activatedAtMs: nowMs,
      nextPollAtMs: (before.nextPollAtMs ?? 0) - HOUR_MS,
      latest: { atMs: NOON - MINUTE_MS, learntAtMs: nowMs },
    })
  })

  test('P13: a clock that is put back starts no polls, and changes no time in the past', async () => {
    const { push, writes, stateOf, putBack, pass } = await world()
    await push({ trackingIds: ['1001'], eventTime: iso(NOON - MINUTE_MS) })
    await writes.unwatch({ identifier: '1001' })
    pass(3 * HOUR_MS)
    const { latest, lastSeenAtMs, checkedAtMs } = await stateOf('1001')
    await putBack()
    expect(await stateOf('1001')).toMatchObject({ latest, lastSeenAtMs, checkedAtMs, nextPollAtMs: null, stopped: 'unwatched' })
  })

  test('P13: if a poll ends before the relay notices the jump, the next poll keeps its interval', async () => {
    const { poll, stateOf, putBack, pass } = await world()
    const asked = { asked: '1001', trackingIds: ['1001'], statuses: [{ eventTimestamp: iso(NOON - 2 * HOUR_MS) }] }
    await poll(asked)
    pass(MINUTE_MS)
    const nowMs = await putBack(async () => {
      pass(1000)
      await poll({ ...asked, askedAtMs: NOON + MINUTE_MS - 1000 })
      pass(1000)
    })
    const { checkedAtMs, nextPollAtMs } = await stateOf('1001')
    expect(checkedAtMs).toBe(nowMs - 1000)
    expect(nextPollAtMs).toBeGreaterThanOrEqual(nowMs - 1000 + HOUR_MS)
    expect(nextPollAtMs).toBeLessThan(nowMs + 1.2 * HOUR_MS)
  })

  test('P13, 6.4: a Retry-After that comes before the relay notices the jump keeps its length', async () => {
    const { poll, stateOf, putBack, pass, now, writes, parcelIdOf } = await world()
    await poll({ asked: '1001', trackingIds: ['1001'] })
    pass(MINUTE_MS)
    const parcelId = await parcelIdOf('1001')
    const nowMs = await putBack(async () => {
      await writes.notePollFailure({ parcelId, kind: 'unusable', atMs: now(), retryAfterMs: HOUR_MS / 2 })
      pass(1000)
    })
    expect(await stateOf('1001')).toMatchObject({ checkedAtMs: nowMs - 1000, nextPollAtMs: nowMs - 1000 + HOUR_MS / 2 })
  })

  test('P13, 6.6: an entry found before the relay notices the jump gets its whole grace period', async () => {
    const { push, poll, writes, pass, now, putBack } = await world()
    await push({ trackingIds: ['1001'], eventTime: iso(NOON - 2 * HOUR_MS) })
    pass(HOUR_MS)
    await putBack(
      async () => void (await poll({ asked: '1001', trackingIds: ['1001'], statuses: [{ eventTimestamp: iso(NOON - MINUTE_MS) }] })),
    )
    expect(await writes.settleMissedPushes(now())).toEqual([])
    expect(await writes.settleMissedPushes(pass(9 * MINUTE_MS))).toEqual([])
    expect(await writes.settleMissedPushes(pass(MINUTE_MS))).toHaveLength(1)
  })

  test('P13, 6.6: the grace period of a missed push keeps its length', async () => {
    const { push, poll, writes, pass, putBack } = await world()
    await push({ trackingIds: ['1001'], eventTime: iso(NOON - 2 * HOUR_MS) })
    pass(HOUR_MS)
    await poll({ asked: '1001', trackingIds: ['1001'], statuses: [{ eventTimestamp: iso(NOON + MINUTE_MS) }] })
    await putBack()
    expect(await writes.settleMissedPushes(pass(9 * MINUTE_MS))).toEqual([])
    expect(await writes.settleMissedPushes(pass(MINUTE_MS))).toMatchObject([{ foundAtMs: NOON, eventAtMs: NOON }])
  })

  test('P13, 6.3: an identifier unknown to the carrier is tried again after the same wait', async () => {
    const { poll, writes, pass, putBack, now } = await world()
    await poll({ asked: 'AB123456789SE', trackingIds: ['1001'] })
    const claim = async () => (await writes.claimPoll({ identifier: '1001', nowMs: now(), leaseMs: 1 }))?.identifiers ?? []
    await writes.noteNotPollable('AB123456789SE')
    await putBack()
    let waitedMs = 0
    for (; !(await claim()).includes('AB123456789SE'); waitedMs += HOUR_MS) pass(HOUR_MS)
    const control = await world()
    await control.poll({ asked: 'AB123456789SE', trackingIds: ['1001'] })
    await control.writes.noteNotPollable('AB123456789SE')
    control.pass(waitedMs)
    expect((await control.writes.claimPoll({ identifier: '1001', nowMs: control.now(), leaseMs: 1 }))?.identifiers).toContain(
      'AB123456789SE',
    )
  })

  test('P13, 6.3: if the carrier knows no identifier, the next poll still comes a day later', async () => {
    const { push, stateOf, writes, pass, putBack, now, parcelIdOf } = await world()
    await push({ trackingIds: ['1001'] })
    pass(2 * HOUR_MS)
    await writes.noteNotPollable('1001')
    await writes.notePollFailure({ parcelId: await parcelIdOf('1001'), kind: 'unknown', atMs: now() })
    await writes.watch({ identifier: '1001', nowMs: pass(MINUTE_MS) })
    const backMs = await putBack()
    const atNextTime = async () => {
      pass(((await stateOf('1001')).nextPollAtMs ?? expect.fail('it is not planned')) - now())
      return await writes.claimDuePolls({ nowMs: now(), limit: 1, leaseMs: 1 })
    }
    expect(await atNextTime()).toEqual([])
    expect((await atNextTime()).map(({ identifiers }) => identifiers)).toEqual([['1001']])
    expect(now()).toBe(backMs + DAY_MS)
  })

  test('P13: the next key of an endpoint takes over after the same wait', async () => {
    const { writes, reads, pass, putBack, now } = await world()
    const { id } = await addEndpoint(writes, NOON)
    await writes.changeEndpoint({ id, change: {}, key: { kind: 'rotate', sealed: 'next' }, nowMs: now() })
    const keys = async () => (await reads.listEndpoints())[0]?.keys ?? expect.fail('there is no endpoint with keys')
    // The next key takes over after a day, of which an hour passes here.
    pass(HOUR_MS)
    await putBack()
    const kept = await keys()
    expect(kept).toMatchObject({ current: 'sealed', next: { sealed: 'next', fromMs: NOON + 23 * HOUR_MS } })
    const dueMs = pass(23 * HOUR_MS)
    expect([keysAt(kept, dueMs - 1).current, keysAt(kept, dueMs).current]).toEqual(['sealed', 'next'])
  })
})

test('P13: shifted keys keep their remaining times', () => {
  const keys = rotateKeys({ current: 'a', next: null }, 'b', NOON)
  const dueInMs = (keys.next?.fromMs ?? 0) - NOON
  expect(shiftKeys(keys, HOUR_MS).next).toEqual({ sealed: 'b', fromMs: NOON - HOUR_MS + dueInMs })
})

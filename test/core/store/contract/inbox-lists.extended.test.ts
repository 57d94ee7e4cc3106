import { describe, expect, test } from 'vitest'
import type { InboxQuery } from '../../../../src/core/domain/ingest/inbox.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const ADMIN = { kind: 'app', name: 'admin', address: '127.0.0.1' } as const

/** Stores six pushes: two that are recorded, one with a wrong time, one that is not JSON, one that has expired, and another with a wrong time. */
async function openInbox(engine: Engine) {
  const store = await openStore(NOON, engine)
  const bodies = [
    pushBody({ trackingIds: ['10010001'] }),
    pushBody({ trackingIds: ['20020002'] }),
    pushBody({ trackingIds: ['10010001'], eventTime: 'soon' }),
    Buffer.from('{"status":"A",'),
    pushBody({ trackingIds: ['10010001'], eventTime: new Date(NOON - 1000 * DAY_MS).toISOString() }),
    pushBody({ trackingIds: ['20020002'], eventTime: '2026-03-01T10:00:00+01:00' }),
  ]
  for (const body of bodies) await store.record(incomingPush(body, store.pass(1000)))
  const ids = await store.inboxIds()
  /** Returns the indexes of the pushes on all pages, newest first. */
  const listed = async (query: Partial<InboxQuery>) => {
    const found: number[] = []
    let before: number | null = null
    do {
      const page: Awaited<ReturnType<typeof store.reads.listInbox>> = await store.reads.listInbox({
        state: null,
        before,
        limit: 2,
        ...query,
      })
      found.push(...page.pushes.map(({ inboxId }) => ids.indexOf(inboxId)))
      before = page.next
    } while (before !== null)
    return found
  }
  const idOf = (nth: number) => ids[nth] ?? expect.fail(`no push ${nth}`)
  const dismiss = (nth: number) => store.writes.dismissPush({ inboxId: idOf(nth) })
  return { ...store, listed, idOf, dismiss, upTo: Math.max(...ids) }
}

describe.each(engines)('the inbox on $name', (engine) => {
  test('is filtered by state, reason and parcel, and each push is on one page', async () => {
    const { listed, dismiss } = await openInbox(engine)
    expect(await listed({})).toEqual([5, 4, 3, 2, 1, 0])
    expect(await listed({ reason: 'event_time' })).toEqual([5, 2])
    expect(await listed({ state: 'recorded', reason: 'event_time' })).toEqual([])
    expect(await dismiss(2)).toBe('done')
    expect(await listed({ state: 'dismissed' })).toEqual([2])
    expect(await listed({ state: 'quarantined' })).toEqual([5, 3])
    expect(await listed({ reason: 'event_time' })).toEqual([5, 2])
    expect(await listed({ state: 'quarantined', reason: 'event_time' })).toEqual([5])
    expect(await listed({ parcel: '10010001' })).toEqual([4, 2, 0])
    expect(await listed({ parcel: '10010001', state: 'recorded' })).toEqual([0])
    expect(await listed({ parcel: '20020002', reason: 'event_time' })).toEqual([5])
    expect(await listed({ parcel: '30030003' })).toEqual([])
  })

  test('needs only a few pages to skip the gap that a restore leaves between ids', async () => {
    const { reads, path, idOf } = await openInbox(engine)
    await changeStoredRows(path, 'update inbox set id = id + 3000000000 where id >= ?', idOf(3))
    const sizes: number[] = []
    for (let before: number | null = Number.MAX_SAFE_INTEGER; before !== null; ) {
      const page: Awaited<ReturnType<typeof reads.listInbox>> = await reads.listInbox({ state: null, before, limit: 10 })
      sizes.push(page.pushes.length)
      before = page.next
      expect(sizes.length).toBeLessThan(4)
    }
    expect(sizes.filter((size) => size > 0)).toEqual([3, 3])
  })

  test('is filtered by the time of receipt, alone or with any other filter', async () => {
    const { listed, dismiss } = await openInbox(engine)
    const came = (nth: number) => NOON + (nth + 1) * 1000
    expect(await listed({ fromMs: came(1), toMs: came(4) })).toEqual([3, 2, 1])
    expect(await listed({ fromMs: came(4) })).toEqual([5, 4])
    expect(await listed({ toMs: came(0) + 1, state: 'recorded' })).toEqual([0])
    expect(await listed({ toMs: came(0) })).toEqual([])
    expect(await listed({ fromMs: came(5) + 1 })).toEqual([])
    await dismiss(2)
    expect(await listed({ fromMs: came(3), reason: 'event_time' })).toEqual([5])
    expect(await listed({ toMs: came(3), reason: 'event_time' })).toEqual([2])
    expect(await listed({ fromMs: came(3), toMs: came(5), state: 'quarantined' })).toEqual([3])
    expect(await listed({ fromMs: came(1), parcel: '10010001' })).toEqual([4, 2])
    expect(await listed({ toMs: came(1), parcel: '10010001' })).toEqual([0])
  })

  test('is filtered by time without reading pushes of other hours, even if ids have gaps', async () => {
    const { reads, record, pass, inboxIds, path } = await openStore(NOON, engine)
    for (let hour = 0; hour < 20; hour++) await record(incomingPush(pushBody({ trackingIds: [`4004000${hour}`] }), pass(HOUR_MS)))
    const ids = await inboxIds()
    await changeStoredRows(path, `delete from inbox where id in (${ids.slice(3, 9).join()})`)
    for (let hour = 0; hour < 20; hour++) {
      const fromMs = NOON + (hour + 1) * HOUR_MS
      const { pushes, next } = await reads.listInbox({ state: null, before: null, limit: 10, fromMs, toMs: fromMs + 1 })
      expect([pushes.map(({ inboxId }) => inboxId), next]).toEqual([hour < 3 || hour >= 9 ? [ids[hour]] : [], null])
    }
  })

  test('filtered by a tracking number, also lists pushes that name other ids of the parcel', async () => {
    const { listed, poll } = await openInbox(engine)
    await poll({ asked: 'AB123456789SE', trackingIds: ['10010001'] })
    expect(await listed({ parcel: 'AB123456789SE' })).toEqual([4, 2, 0])
  })

  test('shows for each push its parcel, its status, and where its body is wrong', async () => {
    const { reads, idOf } = await openInbox(engine)
    const { pushes } = await reads.listInbox({ state: null, before: null, limit: 10 })
    const told = pushes.map(({ identifiers, status, fault }) => [identifiers.join(), status, fault?.member ?? null])
    expect(told).toEqual([
      ['20020002', 'TerminalArrived', 'eventTime'],
      ['10010001', 'TerminalArrived', null],
      ['', null, null],
      ['10010001', 'TerminalArrived', 'eventTime'],
      ['20020002', 'TerminalArrived', null],
      ['10010001', 'TerminalArrived', null],
    ])
    expect((await reads.inspectPush(idOf(3)))?.fault).toMatchObject({ member: null, from: 14, to: 14 })
  })

  test('does not read a long body for a list, and shows its fault when the push is read alone', async () => {
    const { record, reads, now } = await openStore(NOON, engine)
    const body = Buffer.concat([pushBody(), Buffer.from(' '.repeat(100_000)), Buffer.from('x')])
    await record(incomingPush(body, now()))
    const [push] = (await reads.listInbox({ state: 'quarantined', before: null, limit: 1 })).pushes
    expect(push).toMatchObject({ status: null, fault: null, bodyBytes: body.length })
    expect((await reads.inspectPush(push?.inboxId ?? 0))?.fault).toMatchObject({ from: body.length - 1 })
  })

  test('counts quarantined pushes by reason, and lists the reason of the newest push first', async () => {
    const { reads, idOf } = await openInbox(engine)
    const end = (nth: number) => ({ inboxId: idOf(nth), receivedAtMs: NOON + (nth + 1) * 1000 })
    expect(await reads.countHeld('quarantined')).toEqual([
      { reason: 'event_time', count: 2, first: end(2), last: end(5) },
      { reason: 'json_syntax', count: 1, first: end(3), last: end(3) },
    ])
    expect(await reads.countHeld('expired')).toMatchObject([{ reason: null, count: 1 }])
  })
})

describe.each(engines)('a dismissed push on $name', (engine) => {
  test('no longer counts as a problem, even when it is pushed again, and keeps its reason', async () => {
    const { reads, writes, idOf, dismiss, record, now } = await openInbox(engine)
    expect([await dismiss(3), await dismiss(0), await writes.dismissPush({ inboxId: 1_000_000 })]).toEqual(['done', 'settled', 'unknown'])
    expect((await reads.counts(NOON)).quarantined).toBe(2)
    expect((await record(incomingPush(Buffer.from('{"status":"A",'), now()))).outcomes).toEqual([{ kind: 'duplicate' }])
    expect(await reads.inspectPush(idOf(3))).toMatchObject({ state: 'dismissed', reason: 'json_syntax', duplicates: 1 })
  })

  test('is left out when all are reprocessed, and is quarantined again when reprocessed alone', async () => {
    const { reads, writes, idOf, dismiss, upTo, now } = await openInbox(engine)
    await dismiss(2)
    const batch = { selection: { state: 'quarantined', reason: null }, after: 0, upTo, limit: 100, nowMs: now() } as const
    expect((await writes.reprocessHeld(batch)).report.outcomes).toHaveLength(2)
    expect((await reads.inspectPush(idOf(2)))?.state).toBe('dismissed')
    await writes.reprocess({ inboxId: idOf(2), nowMs: now() })
    expect((await reads.inspectPush(idOf(2)))?.state).toBe('quarantined')
  })

  test('may be dismissed in a batch, which selects pushes by reason and up to an id', async () => {
    const { reads, writes, idOf, upTo } = await openInbox(engine)
    const first = await writes.dismissHeld({ reason: 'event_time', after: 0, upTo, limit: 1 })
    expect(first).toEqual({ count: 1, next: idOf(2) })
    expect(await writes.dismissHeld({ reason: 'event_time', after: idOf(2), upTo: idOf(4), limit: 9 })).toEqual({ count: 0, next: null })
    expect(await reads.countHeld('quarantined')).toMatchObject([
      { reason: 'event_time', count: 1 },
      { reason: 'json_syntax', count: 1 },
    ])
    expect(await writes.dismissHeld({ reason: null, after: 0, upTo, limit: 9 })).toEqual({ count: 2, next: null })
    expect(await reads.countHeld('quarantined')).toEqual([])
    expect((await reads.inspectPush(idOf(0)))?.state).toBe('recorded')
  })

  test('is in the audit trail with the name of who dismissed it', async () => {
    const { reads, writes, idOf } = await openInbox(engine)
    const target = { kind: 'push', id: String(idOf(2)) } as const
    const action = { atMs: NOON, by: ADMIN, action: 'push.dismissed', target, detail: {} } as const
    for (let times = 0; times < 2; times++) await writes.dismissPush({ inboxId: idOf(2), action })
    expect((await reads.listActions({ before: null, limit: 5 })).actions).toMatchObject([{ action: 'push.dismissed', by: ADMIN, target }])
  })
})

describe.each(engines)('reprocessing by filter on $name', (engine) => {
  /** Quarantines these pushes as if an earlier version had not understood them. */
  const hold = (path: string, ids: readonly number[]) =>
    Promise.all(
      ids.map((id) => changeStoredRows(path, "update inbox set state = 1, reason = 'event_time', parcel_id = -id where id = ?", id)),
    )

  test('takes the oldest pushes of a reason first, in batches, and none above the last id', async () => {
    const { reads, writes, record, now, path, inboxIds } = await openStore(NOON, engine)
    for (let nth = 0; nth < 5; nth++) await record(incomingPush(Buffer.from(`{"nth":${nth}`), now() + nth))
    const ids = await inboxIds()
    await hold(path, ids.slice(0, 4))
    const selection = { state: 'quarantined', reason: 'event_time' } as const
    const seen: number[] = []
    let after: number | null = 0
    while (after !== null) {
      const batch: Awaited<ReturnType<typeof writes.reprocessHeld>> = await writes.reprocessHeld({
        selection,
        after,
        upTo: ids[2] ?? 0,
        limit: 2,
        nowMs: now(),
      })
      seen.push(batch.report.outcomes.length)
      after = batch.next
    }
    expect(seen).toEqual([2, 1])
    expect(await reads.countHeld('quarantined')).toMatchObject([
      { reason: 'json_syntax', count: 4 },
      { reason: 'event_time', count: 1 },
    ])
  })

  test('runs as a job in passes, records what is understood now, and ends', async () => {
    const { reads, writes, path, now, push, inboxIds } = await openStore(NOON, engine)
    for (let nth = 0; nth < 5; nth++) await push({ trackingIds: [`6000000${nth}`], eventTime: `2026-03-01T10:00:0${nth}Z` })
    const ids = await inboxIds()
    await hold(path, ids)
    const task = { kind: 'reprocess', selection: { state: 'quarantined', reason: 'event_time' }, upTo: Math.max(...ids) } as const
    const job = await writes.startJob({ task, by: 'admin', nowMs: now() })
    const passes: unknown[] = []
    for (let isDone = false; !isDone; ) {
      const worked = await writes.workOnJobs({ limit: 2, nowMs: now() })
      passes.push([worked.report?.outcomes.length, (await reads.findJob(job?.jobId ?? 0))?.done])
      isDone = worked.isDone
    }
    expect(passes).toEqual([
      [2, 2],
      [2, 4],
      [1, 5],
    ])
    expect(await reads.findJob(job?.jobId ?? 0)).toMatchObject({ state: 'done', task })
    expect(await reads.countHeld('quarantined')).toEqual([])
  })
})

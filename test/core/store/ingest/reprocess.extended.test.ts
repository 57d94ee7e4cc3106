import { describe, expect, test } from 'vitest'
import { pushBody } from '../../../support/history/builders.ts'
import { inboxIn } from '../../../support/relay/inbox.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const TEN_YEARS_MS = 3650 * DAY_MS

describe.each(engines)('reprocessing on $name', (engine) => {
  test('5.4: a push that expired under a wrong clock is recorded when reprocessed', async () => {
    const { push, pass, reads, writes, path, now } = await openStore(NOON, engine)
    pass(TEN_YEARS_MS)
    await push()
    pass(-TEN_YEARS_MS)
    const [held] = (await reads.listInbox({ state: 'expired', before: null, limit: 10 })).pushes
    const inboxId = held?.inboxId ?? 0
    expect(await writes.reprocess({ inboxId, nowMs: now() })).toMatchObject({
      kind: 'done',
      report: { outcomes: [{ kind: 'recorded', newEntries: 1 }], touchedParcels: [expect.any(Number)] },
    })
    const view = await reads.findParcel('1001')
    // The push counts as received now, and not at the wrong time in ten years.
    expect([view?.entries.length, view?.lastSeenAtMs]).toEqual([1, NOON])
    expect(await reads.inspectPush(inboxId)).toMatchObject({ state: 'recorded', body: pushBody() })
    const inbox = inboxIn(path)
    expect(await inbox.rowOf(pushBody())).toMatchObject({ state: 'recorded', parcelId: view?.parcelId })
    const { items } = await reads.readFeed({ after: 0, limit: 10 })
    expect(items.length).toBeGreaterThan(0)
    expect(await writes.reprocess({ inboxId, nowMs: now() })).toEqual({ kind: 'settled' })
    expect((await push()).outcomes).toEqual([{ kind: 'duplicate' }])
  })

  test('5.4: an expired push whose repeat was recorded is a duplicate when reprocessed', async () => {
    const { push, pass, reads, writes, path, now, inboxIds } = await openStore(NOON, engine)
    pass(TEN_YEARS_MS)
    await push()
    pass(-TEN_YEARS_MS)
    await push()
    const [inboxId = 0] = await inboxIds()
    expect(await writes.reprocess({ inboxId, nowMs: now() })).toMatchObject({
      kind: 'done',
      report: { outcomes: [{ kind: 'duplicate' }] },
    })
    const inbox = inboxIn(path)
    expect(await inbox.rowOf(pushBody())).toMatchObject({ state: 'recorded', duplicates: 1 })
    expect((await reads.findParcel('1001'))?.entries).toHaveLength(1)
  })

  test('5.4: a push that is still too old when it is reprocessed stays expired', async () => {
    const { push, pass, reads, writes, now, inboxIds } = await openStore(NOON, engine)
    pass(500 * DAY_MS)
    await push()
    const [inboxId = 0] = await inboxIds()
    expect(await writes.reprocess({ inboxId, nowMs: now() })).toMatchObject({
      kind: 'done',
      report: { outcomes: [{ kind: 'expired' }] },
    })
    expect(await reads.inspectPush(inboxId)).toMatchObject({ state: 'expired' })
    expect(await writes.reprocess({ inboxId: inboxId + 1, nowMs: now() })).toEqual({ kind: 'unknown' })
  })

  test('5.3: a reprocessed push is recorded if it is understood now, or else stays quarantined', async () => {
    const { record, reads, writes, now, errors, inboxIds } = await openStore(NOON, engine)
    await record({ ...incomingPush(pushBody(), NOON), reading: { ok: false, reason: 'failed' } }, incomingPush(Buffer.from('[]'), NOON))
    const [first = 0, second = 0] = await inboxIds()
    expect((await reads.listInbox({ state: 'quarantined', before: null, limit: 10 })).pushes).toMatchObject([
      { inboxId: second, reason: 'schema' },
      { inboxId: first, reason: 'failed' },
    ])
    expect(await writes.reprocess({ inboxId: first, nowMs: now() })).toMatchObject({ report: { outcomes: [{ kind: 'recorded' }] } })
    expect(await writes.reprocess({ inboxId: second, nowMs: now() })).toMatchObject({
      report: { outcomes: [{ kind: 'quarantined', reason: 'schema' }] },
    })
    expect((await reads.listInbox({ state: null, before: null, limit: 10 })).pushes).toMatchObject([
      { inboxId: second, state: 'quarantined', reason: 'schema' },
      { inboxId: first, state: 'recorded', reason: null },
    ])
    expect([(await reads.counts(now())).quarantined, errors]).toEqual([1, []])
  })

  test('1.6: a push that a full parcel refuses again stays in the inbox with its bytes', async () => {
    const { record, poll, pass, reads, writes, now, inboxIds } = await openStore(NOON, engine)
    pass(500 * DAY_MS)
    const refused = pushBody({ trackingIds: ['1001'], eventTime: new Date(NOON).toISOString() })
    await record(incomingPush(refused, now()))
    pass(-500 * DAY_MS)
    const statuses = Array.from({ length: 2000 }, (_, at) => ({ eventTimestamp: new Date(NOON - (at + 1) * 1000).toISOString() }))
    await poll({ asked: '1001', trackingIds: ['1001'], statuses })
    const [inboxId = 0] = await inboxIds()
    expect(await writes.reprocess({ inboxId, nowMs: now() })).toMatchObject({
      report: { outcomes: [{ kind: 'quarantined', reason: 'parcel_full' }] },
    })
    expect(await reads.inspectPush(inboxId)).toMatchObject({ state: 'quarantined', reason: 'parcel_full', body: refused })
  })

  test.each(['recorded', 'quarantined', null] as const)(
    'the inbox is listed page by page, newest first, each push once (state %s)',
    async (state) => {
      const { record, reads } = await openStore(NOON, engine)
      for (let at = 0; at < 5; at++) {
        await record(incomingPush(pushBody({ location: `place ${at}` }), NOON), incomingPush(Buffer.from(`"${at}"`), NOON))
      }
      const found: number[] = []
      let before: number | null = null
      do {
        const page: Awaited<ReturnType<typeof reads.listInbox>> = await reads.listInbox({ state, before, limit: 2 })
        found.push(...page.pushes.map(({ inboxId }) => inboxId))
        before = page.next
      } while (before !== null)
      expect(found).toHaveLength(state === null ? 10 : 5)
      expect(found).toEqual([...new Set(found)].toSorted((a, b) => b - a))
    },
  )
})

import { describe, expect, test } from 'vitest'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

describe.each(engines)('the inbox on $name', (engine) => {
  test('keeps the exact bytes of a push, even a zero byte', async () => {
    const { record, reads } = await openStore(NOON, engine)
    const body = Buffer.from([0, 255, 123, 0, 10])
    await record(incomingPush(body, NOON))
    const { pushes } = await reads.listInbox({ state: 'quarantined', before: null, limit: 10 })
    expect(pushes).toMatchObject([{ state: 'quarantined', receivedAtMs: NOON, bodyBytes: 5 }])
    const found = await reads.inspectPush(pushes[0]?.inboxId ?? 0)
    expect(Buffer.from(found?.body ?? [])).toEqual(body)
    expect((await reads.counts(NOON)).quarantined).toBe(1)
  })

  test('keeps a repeated push once, and counts the repeats', async () => {
    const { push, reads } = await openStore(NOON, engine)
    await push()
    for (let times = 0; times < 3; times++) expect((await push()).outcomes).toEqual([{ kind: 'duplicate' }])
    const { pushes } = await reads.listInbox({ state: null, before: null, limit: 10 })
    expect(pushes).toMatchObject([{ state: 'recorded', duplicates: 3 }])
  })

  test('counts a push as a duplicate if another batch records the same push at the same time', async () => {
    const { push, reads } = await openStore(NOON, engine)
    const outcomes = (await Promise.all([push(), push()])).flatMap((report) => report.outcomes.map(({ kind }) => kind))
    expect(outcomes.toSorted()).toEqual(['duplicate', 'recorded'])
    expect((await reads.findParcel('1001'))?.entries).toHaveLength(1)
  })

  test('lists pushes newest first, a page at a time, each push once, and by state', async () => {
    const { record, reads } = await openStore(NOON, engine)
    for (let at = 0; at < 7; at++) await record(incomingPush(pushBody({ trackingIds: [`100${at}`] }), NOON + at))
    await record(incomingPush(Buffer.from('nonsense'), NOON + 7))
    const seen: number[] = []
    let before: number | null = null
    do {
      const page: Awaited<ReturnType<typeof reads.listInbox>> = await reads.listInbox({ state: null, before, limit: 3 })
      seen.push(...page.pushes.map(({ receivedAtMs }) => receivedAtMs - NOON))
      before = page.next
    } while (before !== null)
    expect(seen).toEqual([7, 6, 5, 4, 3, 2, 1, 0])
    const { pushes } = await reads.listInbox({ state: 'recorded', before: null, limit: 100 })
    expect(pushes).toHaveLength(7)
    expect(await reads.inspectPush(1_000_000)).toBeNull()
  })
})

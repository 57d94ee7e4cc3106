import { describe, expect, test } from 'vitest'
import type { ParcelCursor } from '../../../../src/core/domain/admin/parcel-list.ts'
import { type TokenKeys, verifyingKeys } from '../../../../src/core/domain/admin/token-keys.ts'
import { NO_CONTEXT } from '../../../../src/core/domain/history/order-context.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const task = {
  kind: 'replay',
  selection: { endpointId: '1', states: ['dead'], fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null },
  to: '1',
  untilMs: NOON,
} as const

describe.each(engines)('administration on $name', (engine) => {
  test('jobs are listed newest first, from an id downwards, and found as they were started', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    for (const by of ['ann', 'bo', 'cy']) await writes.startJob({ task, by, nowMs: NOON })
    const listed = await reads.listJobs({ before: null, limit: 2 })
    expect(listed.map(({ by, state }) => [by, state])).toEqual([
      ['cy', 'waiting'],
      ['bo', 'waiting'],
    ])
    const rest = await reads.listJobs({ before: listed[1]?.jobId ?? 0, limit: 2 })
    expect(rest).toMatchObject([{ by: 'ann', task, createdAtMs: NOON, endedAtMs: null }])
    expect(await reads.findJob(rest[0]?.jobId ?? 0)).toEqual(rest[0])
    expect(await reads.findJob(1_000_000)).toBeNull()
  })

  test('a cancelled job stays cancelled, and a second cancellation does not change its time', async () => {
    const { writes } = await openStore(NOON, engine)
    const job = await writes.startJob({ task, by: 'ann', nowMs: NOON })
    const jobId = job?.jobId ?? 0
    const [one, two] = [await writes.cancelJob({ jobId, nowMs: NOON + 1 }), await writes.cancelJob({ jobId, nowMs: NOON + 2 })]
    expect([one?.state, one?.endedAtMs, two?.endedAtMs]).toEqual(['cancelled', NOON + 1, NOON + 1])
    expect(await writes.cancelJob({ jobId: 1_000_000, nowMs: NOON })).toBeNull()
    expect(await writes.workOnJobs({ limit: 10, nowMs: NOON })).toEqual({
      hasWorked: false,
      hasRetired: false,
      isDone: true,
      report: null,
      rebuilt: null,
    })
  })

  test('a job that is cancelled while it runs stays cancelled', async () => {
    const { writes, reads } = await openStore(NOON, engine)
    const { id } = await addEndpoint(writes, NOON)
    for (let race = 0; race < 25; race++) {
      const job = await writes.startJob({ task: { ...task, to: id }, by: 'ann', nowMs: NOON })
      const jobId = job?.jobId ?? 0
      const [cancelled] = await Promise.all([writes.cancelJob({ jobId, nowMs: NOON }), writes.workOnJobs({ limit: 10, nowMs: NOON })])
      expect(await reads.findJob(jobId)).toEqual(cancelled)
    }
  })

  test('two simultaneous first requests for a secret get the same secret, which is stored', async () => {
    const { writes } = await openStore(NOON, engine)
    const [one, two] = await Promise.all([writes.tokenKeys(), writes.tokenKeys()])
    expect(Buffer.from(one.current)).toEqual(Buffer.from(two.current))
    expect(await writes.relayId()).toBe(await writes.relayId())
  })

  test('a replaced token key verifies for the time that the replacement sets, which may be 0', async () => {
    const { writes } = await openStore(NOON, engine)
    const hex = ({ current, previous }: TokenKeys) => [
      Buffer.from(current).toString('hex'),
      ...previous.map(({ key, untilMs }) => [Buffer.from(key).toString('hex'), untilMs]),
    ]
    const [first] = hex(await writes.tokenKeys())
    const second = await writes.rotateTokenKeys({ nowMs: NOON, keepMs: 1000 })
    expect(hex(second)).toEqual([expect.not.stringMatching(String(first)), [first, NOON + 1000]])
    expect(hex(await writes.tokenKeys())).toEqual(hex(second))
    const third = await writes.rotateTokenKeys({ nowMs: NOON, keepMs: 0 })
    expect(hex(third)).toEqual([expect.not.stringMatching(String(hex(second)[0]))])
    expect(hex(await writes.tokenKeys())).toEqual(hex(third))
  })

  test('keys of tokens verify until their last token has expired, however often they are replaced', async () => {
    const { writes } = await openStore(NOON, engine)
    const first = (await writes.tokenKeys()).current
    for (const atMs of [NOON, NOON + 100, NOON + 200]) await writes.rotateTokenKeys({ nowMs: atMs, keepMs: 1000 })
    const keys = await writes.tokenKeys()
    const verifies = (key: Uint8Array, nowMs: number) => verifyingKeys(keys, nowMs).some((one) => Buffer.from(one).equals(key))
    expect([verifies(first, NOON + 999), verifies(first, NOON + 1000)]).toEqual([true, false])
    expect(verifyingKeys(keys, NOON + 999)).toHaveLength(4)
    // A replacement drops what verifies nothing any more.
    expect((await writes.rotateTokenKeys({ nowMs: NOON + 5000, keepMs: 1000 })).previous).toHaveLength(1)
  })

  test('after two simultaneous replacements of the token key, the first new key still verifies', async () => {
    const { writes } = await openStore(NOON, engine)
    const rotation = { nowMs: NOON, keepMs: 1000 }
    const both = await Promise.all([writes.rotateTokenKeys(rotation), writes.rotateTokenKeys(rotation)])
    const { current, previous } = await writes.tokenKeys()
    const made = both.map((keys) => Buffer.from(keys.current).toString('hex'))
    expect(made.toSorted()).toEqual([current, previous[0]?.key ?? current].map((key) => Buffer.from(key).toString('hex')).toSorted())
  })

  test.each([null, '10'])('parcels are listed in pages, each once, filtered by the prefix %s', async (prefix) => {
    const { push, reads } = await openStore(NOON, engine)
    const ids = Array.from({ length: 9 }, (_, at) => `100${at}`)
    for (const id of ids) await push({ trackingIds: [id] })
    await push({ trackingIds: ['2001'] })
    const seen: string[] = []
    let after: ParcelCursor | null = null
    do {
      const page: Awaited<ReturnType<typeof reads.listParcels>> = await reads.listParcels({
        prefix,
        status: null,
        stopped: null,
        after,
        limit: 4,
      })
      seen.push(...page.parcels.flatMap(({ identifiers }) => identifiers.map(({ value }) => value)))
      after = page.next
    } while (after !== null)
    expect(seen.toSorted()).toEqual(prefix === null ? [...ids, '2001'] : ids)
  })

  test('the parcels of a list are counted, up to a limit of the rows that are read', async () => {
    const { push, reads } = await openStore(NOON, engine)
    for (let at = 0; at < 5; at++) await push({ trackingIds: [`100${at}`, `A00${at}`] })
    await push({ trackingIds: ['1009'], status: 'DeliveryStarted', detailedStatus: 'DeliveryStarted' })
    const any = { prefix: null, status: null, stopped: null }
    const count = (filter: Partial<Parameters<typeof reads.countParcels>[0]>, max = 20) => reads.countParcels({ ...any, ...filter }, max)
    expect(await count({})).toEqual({ count: 6, more: false })
    expect(await count({}, 6)).toEqual({ count: 6, more: false })
    expect(await count({}, 5)).toEqual({ count: 5, more: true })
    expect(await count({ status: 'DeliveryStarted' })).toEqual({ count: 1, more: false })
    expect(await count({ status: 'TerminalArrived' }, 5)).toEqual({ count: 5, more: true })
    expect(await count({ status: 'Never' })).toEqual({ count: 0, more: false })
    expect(await count({ prefix: 'A0' })).toEqual({ count: 5, more: false })
    expect(await count({ prefix: '1', status: 'DeliveryStarted' })).toEqual({ count: 1, more: false })
    expect(await count({ prefix: '1' }, 3)).toEqual({ count: 3, more: true })
    expect(await count({ stopped: 'delivered' })).toEqual({ count: 0, more: false })
  })

  test('the parcels of an order are listed in pages and counted, whatever their number', async () => {
    const { push, writes, reads } = await openStore(NOON, engine)
    const ids = Array.from({ length: 7 }, (_, at) => `100${at}`)
    for (const [at, id] of ids.entries()) await push({ trackingIds: [id], status: at % 2 === 0 ? 'TerminalArrived' : 'Returned' })
    for (const identifier of ids.slice(1)) await writes.saveOrder({ identifier, context: { ...NO_CONTEXT, reference: 'A' }, nowMs: NOON })
    await writes.saveOrder({ identifier: '1000', context: { ...NO_CONTEXT, reference: 'a' }, nowMs: NOON })
    const any = { prefix: null, reference: 'A', status: null, stopped: null }
    const pages: (readonly string[])[] = []
    let after: ParcelCursor | null = null
    do {
      const page: Awaited<ReturnType<typeof reads.listParcels>> = await reads.listParcels({ ...any, after, limit: 4 })
      pages.push(page.parcels.flatMap(({ identifiers }) => identifiers.map(({ value }) => value)))
      after = page.next
    } while (after !== null)
    expect(pages).toEqual([
      ['1001', '1002', '1003', '1004'],
      ['1005', '1006'],
    ])
    expect(await reads.countParcels(any, 20)).toEqual({ count: 6, more: false })
    expect(await reads.countParcels(any, 5)).toEqual({ count: 5, more: true })
    expect(await reads.countParcels({ ...any, status: 'Returned' }, 20)).toEqual({ count: 3, more: false })
    expect(await reads.countParcels({ ...any, reference: 'B' }, 20)).toEqual({ count: 0, more: false })
  })

  test('parcels are listed by their latest status, and all statuses in use are known', async () => {
    const { push, reads } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'] })
    await push({ trackingIds: ['2001'], status: 'DeliveryStarted', detailedStatus: 'DeliveryStarted' })
    const { parcels } = await reads.listParcels({ prefix: null, status: 'DeliveryStarted', stopped: null, after: null, limit: 10 })
    expect(parcels.map(({ identifiers }) => identifiers.map(({ value }) => value))).toEqual([['2001']])
    expect((await reads.listStatuses()).toSorted()).toEqual(['DeliveryStarted', 'TerminalArrived'])
    expect((await reads.inspectParcel('2001'))?.entries).toHaveLength(1)
    expect(await reads.inspectParcel('3001')).toBeNull()
  })

  test('the event values that filters compare are listed, at most a thousand of each member', async () => {
    const { push, poll, record, reads } = await openStore(NOON, engine)
    await push({ trackingIds: ['1001'], detailedStatus: 'ArrivedT2', distributionType: 'Mailbox' })
    await push({ trackingIds: ['2001'], detailedStatus: 'ArrivedT2', distributionType: '' })
    await poll({ asked: '3001', distributionType: 'Locker', statuses: [{ detailedStatus: 'Out' }, { detailedStatus: 'x'.repeat(201) }] })
    const values = async (name: string) =>
      (await reads.listEventValues()).flatMap(({ member, value }) => (member === name ? [value] : [])).toSorted()
    expect([await values('detailedStatus'), await values('distributionType')]).toEqual([
      ['ArrivedT2', 'Out'],
      ['Locker', 'Mailbox'],
    ])
    const made = (nth: number) => pushBody({ trackingIds: [`4${nth + 1000}`], detailedStatus: `Made${nth}`, distributionType: 'Parcel' })
    for (let from = 0; from < 1200; from += 100)
      await record(...Array.from({ length: 100 }, (_, nth) => incomingPush(made(from + nth), NOON)))
    expect((await values('detailedStatus')).length).toBeGreaterThanOrEqual(1000)
    expect((await values('detailedStatus')).length).toBeLessThan(1100)
    expect(await values('distributionType')).toContain('Parcel')
  })
})

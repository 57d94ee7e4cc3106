import { describe, expect, test } from 'vitest'
import type { OperatorAction } from '../../../../src/core/domain/admin/operator-action.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { createTombstoneKeyKeeper } from '../../../../src/upkeep/erasure/tombstone-key.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { OPERATOR } from '../../../support/relay/operator.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { tablesThatHold } from '../../../support/store/all-rows.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'
import { changeStoredRows, storedNumber } from '../../../support/store/stored-rows.ts'

const at = (seconds: number) => new Date(NOON + seconds * 1000).toISOString()

type Opened = Awaited<ReturnType<typeof openErasures>>

/** Claims what is due, and answers each claimed delivery with a text that names what it was about. */
async function refuseAll({ writes }: Opened, text: string): Promise<void> {
  const claim = { settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: NOON }
  const { claimed } = await writes.dispatchRound(claim)
  const result = { kind: 'rejected', status: 404, answerStart: Buffer.from(text), durationMs: 1, retryAfterMs: null } as const
  await writes.dispatchRound({ ...claim, settled: claimed.map((delivery) => ({ ...delivery, atMs: NOON, random: 0, result })) })
}

describe.each(engines)('an erasure is whole on $name', (engine) => {
  test('the kept answer of a failure goes although retention has removed its delivery', async () => {
    const store = await openErasures(engine)
    await addEndpoint(store.writes, NOON)
    await store.push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await refuseAll(store, 'no such parcel: GONE-00-01')
    await changeStoredRows(store.path, 'delete from attempt')
    await changeStoredRows(store.path, 'delete from delivery')
    await store.forget('GONE0001')
    expect(await storedNumber(store.path, 'select count(*) from failure')).toBe(0)
  })

  test('retention removes the kept answer of a failure with its delivery', async () => {
    const store = await openErasures(engine)
    await addEndpoint(store.writes, NOON)
    for (const id of ['GONE0001', 'LAST0001']) await store.push({ trackingIds: [id], eventTime: at(1) })
    await refuseAll(store, 'unknown')
    await changeStoredRows(store.path, 'update delivery set state = 3, settled_at_ms = ?', NOON)
    await changeStoredRows(store.path, 'update failure set delivery_id = (select min(id) from delivery)')
    const nowMs = store.pass(400 * DAY_MS)
    for (let turn = 0; turn < 40 && !(await store.writes.prune({ nowMs })).isDone; turn++);
    for (let turn = 0; turn < 40 && !(await store.writes.prune({ nowMs: store.pass(3_600_000) })).isDone; turn++);
    expect(await storedNumber(store.path, 'select count(*) from delivery')).toBe(0)
    expect(await storedNumber(store.path, 'select count(*) from failure')).toBe(0)
  })

  test('deliveries and attempts of a removed endpoint move with a join, and go with the parcel', async () => {
    const store = await openErasures(engine)
    const { id } = await addEndpoint(store.writes, NOON)
    await store.push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await store.push({ trackingIds: ['GONE0002'], eventTime: at(2) })
    await refuseAll(store, 'neither GONE0001 nor GONE0002')
    await store.writes.removeEndpoint({ id, nowMs: NOON })
    await store.push({ trackingIds: ['GONE0001', 'GONE0002'], eventTime: at(3) })
    const parcelId = await store.parcelIdOf('GONE0001')
    expect(await storedNumber(store.path, 'select count(*) from delivery where parcel_id = ?', parcelId)).toBe(2)
    expect((await store.forget('GONE0002')).removed).toMatchObject({ deliveries: 2, attempts: 2 })
    expect(await storedNumber(store.path, 'select count(*) from attempt')).toBe(0)
    expect(await tablesThatHold(store.path, ['GONE0001', 'GONE0002'])).toEqual([])
  })

  test('deliveries that an earlier version left with a joined parcel go too', async () => {
    const store = await openErasures(engine)
    await addEndpoint(store.writes, NOON)
    await store.push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await store.push({ trackingIds: ['GONE0002'], eventTime: at(2) })
    await refuseAll(store, 'GONE0002')
    const joined = await store.parcelIdOf('GONE0002')
    const { count: left } = { count: await storedNumber(store.path, 'select max(id) from delivery where parcel_id = ?', joined) }
    await store.push({ trackingIds: ['GONE0001', 'GONE0002'], eventTime: at(3) })
    await changeStoredRows(store.path, 'update delivery set parcel_id = ? where id = ?', joined, left)
    await store.forget('GONE0001')
    expect(await storedNumber(store.path, 'select count(*) from delivery')).toBe(0)
    expect(await tablesThatHold(store.path, ['GONE0001', 'GONE0002'])).toEqual([])
  })

  test('after a kill before the search, the repeated order and the next start know all identifiers', async () => {
    for (const repeat of ['order', 'start'] as const) {
      const store = await openErasures(engine)
      await store.push({ trackingIds: ['GONE0001', 'GONE0002'], eventTime: at(1) })
      const broken = Buffer.from(JSON.stringify({ ids: ['GONE0002'] }))
      await store.record(parsePush({ body: broken, contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 }))
      await store.writes.useTombstoneKey(Buffer.alloc(32, 7))
      await store.writes.eraseParcels({ identifiers: ['GONE0001'], nowMs: NOON, dryRun: false })
      if (repeat === 'order') expect((await store.forget('GONE0001')).removed).toMatchObject({ pushes: 1 })
      else await started(store)
      expect(await tablesThatHold(store.path, ['GONE0001', 'GONE0002'])).toEqual([])
    }
  })

  test('an order about a parcel that ends after the parcel was erased does not name it', async () => {
    const store = await openErasures(engine)
    await store.push({ trackingIds: ['GONE0001', 'GONE0002'], eventTime: at(1) })
    await store.forget('GONE0001')
    const refreshed: OperatorAction = {
      atMs: NOON,
      by: OPERATOR,
      action: 'parcel.refreshed',
      target: { kind: 'parcel', id: 'GONE0002' },
      detail: { outcome: 'recorded' },
    }
    await store.writes.recordAction(refreshed)
    expect(await tablesThatHold(store.path, ['GONE0002'])).toEqual([])
  })

  test('a backup that is being made and an unreadable folder of backups are named', async () => {
    const listBackups = async () => ({ names: ['under-way'], unreadable: 'EACCES' })
    const store = await openErasures(engine, null, { listBackups })
    await store.push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    expect(await store.forget('GONE0001')).toMatchObject({ backups: ['under-way'], backupsUnreadable: 'EACCES' })
  })
})

async function started({ writes }: Opened): Promise<void> {
  const vault = { seal: async (text: string) => text, open: async (text: string) => text, isCurrent: () => true }
  await createTombstoneKeyKeeper({
    write: writes,
    vault,
    makeKey: () => Buffer.alloc(32),
    where: () => 'a key',
    clock: { now: () => NOON },
  }).open()
}

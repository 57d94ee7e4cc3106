import { describe, expect, test } from 'vitest'
import type { OperatorAction } from '../../../../src/core/domain/admin/operator-action.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { loadRetention } from '../../../../src/upkeep/retention/remove-aged.rows.ts'
import { addEndpoint, endpointSettings } from '../../../support/delivery/stored-endpoint.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { textsOfTables } from '../../../support/store/all-rows.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'
import { changeStoredRows, storedNumber } from '../../../support/store/stored-rows.ts'

const COMMON_WORDS = ['2026', 'TRUE', 'NULL', 'ADMIN']

const order = (action: OperatorAction['action'], detail: object): OperatorAction => ({
  atMs: NOON,
  by: { kind: 'app', name: 'admin', address: null },
  action,
  target: { kind: 'endpoint', id: '2026' },
  detail: { ...detail },
})

type Opened = Awaited<ReturnType<typeof openErasures>>

/** Fills the audit trail, operator events, jobs and the inbox with records that hold the words in syntax, instants, names and enumerations. */
async function fill({ writes, record }: Opened): Promise<void> {
  await writes.recordAction(order('deliveries.replayed', { parcel: null, missing: true, count: 2026, of: 'admin', fromMs: null }))
  await writes.recordAction(order('endpoint.changed', { endpoint: 'true', change: { url: 'https://hooks.example/2026', backfill: true } }))
  await writes.recordOperatorEvent({ event: 'endpoint_disabled', endpoint: { id: '2026', name: 'admin' }, because: 'gone' }, NOON)
  await writes.startJob({ task: { kind: 'rebuild', dryRun: true, parcels: null, total: 2026 }, by: 'admin', nowMs: NOON })
  const body = { status: 'ADMIN', detailedStatus: 'null', eventTime: '2026-11-29T10:00:00Z', ok: true, admin: null }
  await record(parsePush({ body: Buffer.from(JSON.stringify(body)), contentEncoding: null, receivedAtMs: NOON, keyIndex: 0 }))
}

async function rowsOf(path: string): Promise<Readonly<Record<string, string>>> {
  const rows: Record<string, string> = {}
  for await (const [table, text] of textsOfTables(path)) rows[table] = text
  return rows
}

describe.each(engines)('what an erasure changes on $name', (engine) => {
  test('1.8: erasing identifiers that nobody knows changes no row, and is not audited', async () => {
    const store = await openErasures(engine)
    await fill(store)
    // A relay has it from its start on.
    await store.writes.relayId()
    const before = await rowsOf(store.path)
    for (const identifier of COMMON_WORDS) await expect(store.forget(identifier)).rejects.toMatchObject({ code: 'not_found' })
    expect(await store.forgetList(COMMON_WORDS)).toMatchObject({ unknown: 4, erased: 0, removed: { parcels: 0, mentions: 0, pushes: 0 } })
    expect(await rowsOf(store.path)).toEqual(before)
  })

  test('parcels called 2026, TRUE, NULL and ADMIN are erased, and records with these words stay', async () => {
    const store = await openErasures(engine)
    await fill(store)
    const before = await rowsOf(store.path)
    for (const identifier of COMMON_WORDS) await store.push({ trackingIds: [identifier] })
    await store.writes.recordAction({ ...order('parcel.watched', {}), target: { kind: 'parcel', id: 'TRUE' } })
    expect(await store.forgetList(COMMON_WORDS)).toMatchObject({ erased: 4, removed: { parcels: 4, mentions: 1, pushes: 4 } })
    const after = await rowsOf(store.path)
    for (const table of ['operator_event', 'job', 'inbox']) expect(after[table]).toBe(before[table])
    expect(after.operator_action?.startsWith(before.operator_action ?? '?')).toBe(true)
    expect((await store.reads.listActions({ before: null, limit: 10 })).actions).toHaveLength(4)
    expect(await store.reads.listJobs({ before: null, limit: 10 })).toMatchObject([
      { task: { kind: 'rebuild', dryRun: true, total: 2026 } },
    ])
  })

  test('S21: a damaged record is skipped, counted and told, and the storage is not called clean', async () => {
    const store = await openErasures(engine)
    await fill(store)
    await store.push({ trackingIds: ['GONE0001'] })
    await changeStoredRows(store.path, `update operator_event set detail = '{"note":(erased)}'`)
    await changeStoredRows(store.path, `update job set task = '{"dryRun":(erased)}'`)
    const report = await store.forget('GONE0001')
    expect(report).toMatchObject({ removed: { parcels: 1 }, unreadable: 2, storage: { state: 'pending' } })
    expect(await store.reads.listOperatorEvents({ event: null, fromMs: null, toMs: null, before: null, limit: 9 })).toMatchObject([
      { event: 'endpoint_disabled', detail: { unreadable: true } },
    ])
  })

  test('a damaged job fails, is named at the start, and does not hold up the next one', async () => {
    const { path, writes, reads } = await openErasures(engine)
    const task = { kind: 'rebuild', dryRun: true, parcels: null, total: 0 } as const
    const bad = await writes.startJob({ task, by: 'admin', nowMs: NOON })
    const good = await writes.startJob({ task, by: 'admin', nowMs: NOON })
    await changeStoredRows(path, `update job set task = '{"dryRun":(erased)}' where id = ?`, bad?.jobId ?? 0)
    expect(await reads.listDamaged()).toEqual([`job ${bad?.jobId} (rebuild)`])
    await expect.poll(async () => (await writes.workOnJobs({ limit: 10, nowMs: NOON })).isDone).toBe(true)
    expect(await reads.listJobs({ before: null, limit: 1 })).toMatchObject([{ jobId: good?.jobId, state: 'done' }])
    expect(await storedNumber(path, `select count(*) from job where state = 'failed'`)).toBe(1)
  })

  test('S21: a damaged endpoint is left out and named, and one of the config takes its row over', async () => {
    const { path, writes, reads } = await openErasures(engine)
    const { id: added } = await addEndpoint(writes, NOON, { name: 'one' })
    await changeStoredRows(
      path,
      `update endpoint set settings = '{"url":(erased)}', failed_parcels = '(erased)' where id = ?`,
      Number(added),
    )
    await changeStoredRows(path, `insert into setting (name, value) values ('retention', ?)`, Buffer.from('(erased)'))
    expect(await reads.listEndpoints()).toEqual([])
    expect(await reads.listDamaged()).toEqual(['endpoint "one"'])
    expect(await loadRetention(reads.session)).toEqual({ pass: null, last: null })
    await writes.syncEndpoints([{ ...endpointSettings, name: 'one' }], NOON + 1000, null, true)
    expect(await reads.listEndpoints()).toMatchObject([
      { endpoint: { id: added, name: 'one' }, origin: 'config', beganAtMs: NOON, health: { failedParcels: [] } },
    ])
    expect(await reads.listDamaged()).toEqual([])
  })

  test('S21: an endpoint cannot have the name of a damaged one until that is removed', async () => {
    const { path, writes, reads } = await openErasures(engine)
    const damaged = await addEndpoint(writes, NOON, { name: 'one' })
    const other = await addEndpoint(writes, NOON, { name: 'other' })
    await changeStoredRows(path, `update endpoint set settings = '{"url":(erased)}' where id = ?`, Number(damaged.id))
    const add = async () => {
      const id = await writes.reserveEndpoint(NOON)
      return await writes.addEndpoint({ id, settings: { ...endpointSettings, name: 'one' }, key: 'sealed', from: null, nowMs: NOON })
    }
    const rename = () => writes.changeEndpoint({ id: other.id, change: { name: 'one' }, key: null, nowMs: NOON })
    for (const edit of [add, rename]) expect(await edit()).toEqual({ kind: 'name_damaged', damagedId: damaged.id })
    expect(await writes.removeEndpoint({ id: damaged.id, nowMs: NOON })).toBe('done')
    expect(await writes.removeEndpoint({ id: damaged.id, nowMs: NOON })).toBe('unknown')
    expect((await add()).kind).toBe('done')
    expect((await reads.listEndpoints()).map(({ endpoint }) => endpoint.name)).toEqual(['other', 'one'])
  })
})

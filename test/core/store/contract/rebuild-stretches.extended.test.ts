import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { rebuiltBy } from '../../../../src/upkeep/rebuild/rebuild.rules.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines, newPlace } from '../../../support/store/engines.ts'
import { rebuildStore } from '../../../support/store/rebuilt-store.ts'
import { changeStoredRows, storedNumber } from '../../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const eventTime = (nth: number) => new Date(Date.UTC(2026, 2, 1) + nth * 60_000).toISOString()

/** Stores one parcel with `many` pushes, and `few` parcels with one push each. */
async function unequalParcels(engine: Engine, many: number, few: number, place: string | null = null) {
  const store = await openStore(NOON, engine, place)
  const pushes = Array.from({ length: many }, (_, nth) => incomingPush(pushBody({ eventTime: eventTime(nth) }), NOON))
  const others = Array.from({ length: few }, (_, nth) => incomingPush(pushBody({ trackingIds: [String(5000 + nth)] }), NOON))
  await store.record(...pushes, ...others)
  return store
}

const whole = (rebuild: Awaited<ReturnType<typeof rebuildStore>>) => ({ ...rebuild, examples: [] })

describe.each(engines)('the stretches of a rebuild on $name', (engine) => {
  test('a parcel with many pushes is read in pieces, with the same result as in one piece', async () => {
    const store = await unequalParcels(engine, 35, 3)
    let stretches = 0
    const inPieces = await rebuildStore(store, { limit: 10, meanwhile: async () => stretches++ })
    expect(stretches).toBeGreaterThanOrEqual(4)
    expect(await rebuildStore(store)).toEqual(inPieces)
    expect(inPieces).toMatchObject({ parcels: 4, differing: 0 })
    await changeStoredRows(
      store.path,
      'delete from sighting where at_ms >= ? and at_ms < ?',
      Date.parse(eventTime(3)),
      Date.parse(eventTime(6)),
    )
    expect(await rebuildStore(store, { limit: 10 })).toMatchObject({ changes: { entry: 3 }, left: 0 })
    expect((await store.reads.findParcel('1001'))?.entries).toHaveLength(35)
  })

  test('a rebuild ends with the parcels that were there when it began', async () => {
    const store = await unequalParcels(engine, 1, 15)
    let nth = 0
    const meanwhile = async () => {
      if (nth < 60) await store.push({ trackingIds: [String(7000 + nth++)] })
    }
    expect(await rebuildStore(store, { limit: 4, meanwhile })).toMatchObject({ parcels: 16, left: 0 })
    expect(nth).toBeGreaterThan(0)
  })

  test('pushes that arrive while their parcel is read in pieces are not reported as errors', async () => {
    const store = await unequalParcels(engine, 25, 0)
    let nth = 100
    const meanwhile = () => store.push({ eventTime: eventTime(nth++) })
    expect(await rebuildStore(store, { limit: 10, meanwhile })).toMatchObject({ parcels: 1, differing: 0, left: 0 })
    await changeStoredRows(store.path, 'delete from sighting where at_ms = ?', Date.parse(eventTime(3)))
    // New pushes arrive after every piece, so this rebuild skips the parcel, and the next rebuild corrects it.
    expect(await rebuildStore(store, { limit: 10, meanwhile })).toMatchObject({ parcels: 1, differing: 0, left: 1 })
    expect(await rebuildStore(store, { limit: 10 })).toMatchObject({ changes: { entry: 1 }, left: 0 })
    expect((await store.reads.findParcel('1001'))?.entries).toHaveLength(25 + nth - 100)
  })

  test('a rebuild resumes after a restart, and reports the same as an uninterrupted one', async () => {
    const place = await newPlace(engine)
    const store = await unequalParcels(engine, 12, 60, place)
    await changeStoredRows(
      place,
      'update parcel set entry_count = entry_count + 1 where id in (select parcel_id from identifier where value in (?, ?))',
      '5001',
      '5055',
    )
    const plain = await rebuildStore(store, { dryRun: true })
    expect(plain.differing).toBe(2)
    const job = await store.writes.startJob({
      task: { kind: 'rebuild', dryRun: false, parcels: null, total: 61 },
      by: 'admin',
      nowMs: NOON,
    })
    for (let stretch = 0; stretch < 9; stretch++) expect((await store.writes.workOnJobs({ limit: 10, nowMs: NOON })).isDone).toBe(false)
    const midway = (await store.reads.findJob(job?.jobId ?? 0))?.done ?? 0
    await store.writes.close()
    const next = await openStore(NOON, engine, place)
    while (!(await next.writes.workOnJobs({ limit: 10, nowMs: NOON })).isDone);
    const ended = await next.reads.findJob(job?.jobId ?? 0)
    expect([midway > 0 && midway < 61, ended?.state, ended?.done]).toEqual([true, 'done', 61])
    const report = ended && rebuiltBy(ended)
    expect(report && whole(report)).toEqual(whole(plain))
    expect(await storedNumber(place, 'select max(entry_count) from parcel')).toBe(12)
  })

  test('a rebuild stops when it is cancelled, and the next job runs', async () => {
    const store = await unequalParcels(engine, 1, 40)
    const first = await store.writes.startJob({
      task: { kind: 'rebuild', dryRun: true, parcels: null, total: 41 },
      by: 'admin',
      nowMs: NOON,
    })
    await store.writes.workOnJobs({ limit: 5, nowMs: NOON })
    await store.writes.cancelJob({ jobId: first?.jobId ?? 0, nowMs: NOON })
    expect(await rebuildStore(store)).toMatchObject({ parcels: 41, differing: 0 })
    expect(await store.reads.findJob(first?.jobId ?? 0)).toMatchObject({ state: 'cancelled' })
  })

  test('a rebuild skips a parcel that it cannot read, logs an error, and rebuilds the others', async () => {
    const store = await unequalParcels(engine, 1, 3)
    const second = await store.parcelIdOf('5001')
    await changeStoredRows(store.path, 'update sighting set content_id = 999999 where parcel_id = ?', second)
    await changeStoredRows(store.path, 'update parcel set entry_count = 9')
    expect(await rebuildStore(store)).toMatchObject({ parcels: 4, differing: 3, left: 1 })
    expect(store.errors.length).toBeGreaterThan(0)
    expect(await storedNumber(store.path, 'select count(*) from parcel where entry_count = 9')).toBe(1)
  })
})

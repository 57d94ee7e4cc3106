import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { engines, newPlace } from '../../../support/store/engines.ts'
import { rebuildStore, rowsOf } from '../../../support/store/rebuilt-store.ts'
import { writeSeededStore } from '../../../support/store/seeded-store.ts'
import { changeStoredRows, storedNumber, storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const DERIVED = ['sighting', 'identifier', 'answer', 'parcel'] as const
const LEFT_ALONE = ['inbox', 'delivery', 'composed_event', 'attempt', 'audit', 'language_asked', 'expected_push'] as const

/** Stores three pushes and a poll of one parcel, a push of another, and an endpoint that gets all events. */
async function fewParcels(engine: Engine) {
  const store = await openStore(NOON, engine)
  await addEndpoint(store.writes, NOON)
  await store.push({ status: 'Created', detailedStatus: 'Created', eventTime: '2026-03-01T09:00:00.000Z', location: 'Lund' })
  await store.push({ eventTime: '2026-03-01T10:00:00.250Z' })
  await store.push({ status: 'DeliveryStarted', detailedStatus: 'DeliveryStarted', eventTime: '2026-03-01T11:00:00.000Z' })
  await store.push({ trackingIds: ['2001'], eventTime: '2026-03-01T08:00:00.000Z' })
  store.pass(60_000)
  await store.poll({
    statuses: [{ eventTimestamp: '2026-03-01T10:00:00Z' }, { eventTimestamp: '2026-03-01T07:00:00Z', location: 'Kiruna' }],
  })
  return store
}

const feedOf = async ({ reads }: Pick<Awaited<ReturnType<typeof openStore>>, 'reads'>, after: number) =>
  (await reads.readFeed({ after, limit: 500 })).items.map((item) => [item.kind, 'entry' in item ? (item.entry?.location ?? null) : null])

/** Changes the location in the sightings of a push, as a damaged row or an older rule might. */
async function plantLocation(place: string, atMs: number, location: string): Promise<void> {
  const [row] = await storedRows<{ readonly json: string }>(
    place,
    'select json from content where id in (select content_id from sighting where at_ms = ?)',
    atMs,
  )
  const json = JSON.stringify({ ...JSON.parse(row?.json ?? '{}'), location })
  const digest = createHash('sha256').update(json).digest().subarray(0, 16)
  await changeStoredRows(place, 'insert into content (digest, json) values (?, ?)', digest, json)
  await changeStoredRows(place, 'update sighting set content_id = (select max(id) from content) where at_ms = ?', atMs)
}

const CREATED_MS = Date.parse('2026-03-01T09:00:00Z')

/** Ways to damage rows. `changes`: what a rebuild then changes in histories. */
const PLANTED: Readonly<Record<string, { readonly plant: (place: string) => Promise<unknown>; readonly changes: object }>> = {
  'another text in an entry': {
    plant: (place) => plantLocation(place, CREATED_MS, 'Oslo'),
    changes: { update: 1 },
  },
  'an unknown member and another time of asking': {
    plant: (place) =>
      changeStoredRows(
        place,
        `update sighting set extra = '[["weight","1"]]', asked_at_ms = 7 where at_ms = ?`,
        Date.parse('2026-03-01T07:00:00Z'),
      ),
    changes: { update: 1 },
  },
  'a wrong count, latest status and first push': {
    plant: (place) => changeStoredRows(place, `update parcel set entry_count = 9, latest_status = 'Lost', first_pushed_at_ms = 1`),
    changes: {},
  },
  'an identifier that is no longer marked as a tracking id': {
    plant: (place) => changeStoredRows(place, "update identifier set is_tracking_id = 0 where value = '2001'"),
    changes: { parcel: 1 },
  },
  'an identifier that is gone': {
    plant: (place) => changeStoredRows(place, "delete from identifier where value = '1001'"),
    changes: { parcel: 1 },
  },
  'an answer that names another type and decides nothing': {
    plant: (place) =>
      changeStoredRows(
        place,
        `update answer set entry_count = 5, decides_order = 0, head = '{"trackingIds":[],"distributionType":"Pigeon","extra":[]}'`,
      ),
    changes: { parcel: 1 },
  },
  'a text under the digest of another': {
    plant: (place) => changeStoredRows(place, `update content set json = replace(json, 'Lund', 'Rome')`),
    changes: { update: 1 },
  },
}

describe.each(engines)('a rebuild on $name', (engine) => {
  test('finds nothing to change in intact histories, and proves it by equal digests', async () => {
    const place = await newPlace(engine)
    await writeSeededStore(place, engine)
    const store = await openStore(NOON + DAY_MS, engine, place)
    const before = await rowsOf(place, [...DERIVED, ...LEFT_ALONE, 'content', 'feed'])
    const report = await rebuildStore(store)
    expect(report).toMatchObject({ damaged: 0, left: 0, conflicts: 0, differing: 0, histories: 0, changes: {}, examples: [] })
    expect(report.parcels).toBe(await storedNumber(place, 'select count(*) from parcel'))
    expect([report.stored, report.parcels > 10]).toEqual([report.derived, true])
    expect(await rowsOf(place, [...DERIVED, ...LEFT_ALONE, 'content', 'feed'])).toEqual(before)
  })

  test.each(Object.entries(PLANTED))('corrects %s, and leaves everything else alone', async (_damage, { plant, changes }) => {
    const store = await fewParcels(engine)
    const { path } = store
    const derived = await rowsOf(path, DERIVED)
    const others = await rowsOf(path, [...LEFT_ALONE, 'feed'])
    await plant(path)
    const damaged = await rowsOf(path, [...DERIVED, ...LEFT_ALONE, 'feed'])

    const dry = await rebuildStore(store, { dryRun: true })
    expect([dry.changes, dry.stored === dry.derived]).toEqual([changes, false])
    expect(dry.examples.map(({ kind }) => kind)).toEqual(Object.keys(changes))
    expect(await rowsOf(path, [...DERIVED, ...LEFT_ALONE, 'feed'])).toEqual(damaged)

    const report = await rebuildStore(store)
    expect({ ...report, examples: [] }).toEqual({ ...dry, examples: [] })
    expect(withoutSchedule(await rowsOf(path, DERIVED))).toEqual(withoutSchedule(derived))
    expect(await rowsOf(path, LEFT_ALONE)).toEqual({ ...others, feed: undefined })
    const told = Object.keys(changes).length
    expect(await storedNumber(path, 'select count(*) from feed')).toBe((others.feed?.length ?? 0) + told)

    const again = await rebuildStore(store)
    expect([again.differing, again.stored]).toEqual([0, again.derived])
  })

  test('restores a lost entry and adds it to the feed, but does not send it to endpoints', async () => {
    const store = await fewParcels(engine)
    const last = (await store.reads.readFeed({ after: 0, limit: 500 })).last
    const sent = await storedNumber(store.path, 'select count(*) from delivery')
    await changeStoredRows(store.path, 'delete from sighting where at_ms = ?', CREATED_MS)
    const report = await rebuildStore(store)
    expect([report.changes, report.examples[0]?.entry]).toEqual([{ entry: 1 }, null])
    expect(await feedOf(store, last)).toEqual([['entry', 'Lund']])
    expect((await store.reads.findParcel('1001'))?.entries.map(({ location }) => location)).toContain('Lund')
    await store.push({ status: 'Created', detailedStatus: 'Created', eventTime: '2026-03-01T09:00:00Z', location: 'Lund' })
    expect(await storedNumber(store.path, 'select count(*) from delivery')).toBe(sent)
  })

  test('removes an entry that no push contains, and the feed says that the parcel has changed', async () => {
    const store = await fewParcels(engine)
    const last = (await store.reads.readFeed({ after: 0, limit: 500 })).last
    const columns = 'time_form, content_id, listing, ordinal, asked_at_ms, learnt_at_ms, audience, extra'
    await changeStoredRows(
      store.path,
      `insert into sighting (parcel_id, at_ms, sequence, ${columns}) select parcel_id, at_ms + 7200000, sequence + 100000, ${columns} from sighting where at_ms = ?`,
      CREATED_MS,
    )
    expect((await rebuildStore(store)).changes).toEqual({ removed: 1 })
    expect(await feedOf(store, last)).toEqual([['update', null]])
    expect((await store.reads.findParcel('1001'))?.entries).toHaveLength(4)
  })

  test('adds values that an older rule left out, keeps entry ids, and puts changes into the feed', async () => {
    const store = await fewParcels(engine)
    const last = (await store.reads.readFeed({ after: 0, limit: 500 })).last
    const facts = 'select sequence, learnt_at_ms, audience, asked_at_ms from sighting order by sequence'
    const before = await storedRows(store.path, facts)
    for (const time of ['08:00:00.000', '09:00:00.000', '11:00:00.000'])
      await plantLocation(store.path, Date.parse(`2026-03-01T${time}Z`), '')
    const report = await rebuildStore(store, { dryRun: true })
    expect([report.histories, report.changes]).toEqual([2, { update: 3 }])
    expect(report.examples).toMatchObject([{ kind: 'update', members: ['location'], entry: expect.any(Number) }])
    await rebuildStore(store)
    expect(await storedRows(store.path, facts)).toEqual(before)
    const told = (await feedOf(store, last)).map((event) => event.join(' '))
    expect(told.sort()).toEqual(['update Lund', 'update Stockholm', 'update Stockholm'])
  })

  test('derives a parcel from its sightings if pushes lack their bytes, and counts these parcels', async () => {
    const store = await fewParcels(engine)
    await changeStoredRows(store.path, 'update inbox set body = null where id = (select min(id) from inbox)')
    await plantLocation(store.path, CREATED_MS, 'Oslo')
    await changeStoredRows(store.path, 'update parcel set entry_count = 9')
    const report = await rebuildStore(store)
    expect(report).toMatchObject({ parcels: 2, fromSightings: 1, damaged: 0, differing: 2, histories: 0 })
    expect(await storedNumber(store.path, 'select max(entry_count) from parcel')).toBe(4)
    expect((await store.reads.findParcel('1001'))?.entries.map(({ location }) => location)).toContain('Oslo')
  })

  test('ignores bytes that do not match their digest', async () => {
    const store = await fewParcels(engine)
    const [row] = await storedRows<{ readonly body: Uint8Array }>(store.path, 'select body from inbox order by id limit 1')
    const body = Buffer.from(
      Buffer.from(row?.body ?? [])
        .toString()
        .replace('1001', '2001')
        .replace('Lund', 'Rome'),
    )
    await changeStoredRows(store.path, 'update inbox set body = ? where id = (select min(id) from inbox)', body)
    expect(await rebuildStore(store)).toMatchObject({ fromSightings: 1, damaged: 1, conflicts: 0, differing: 0 })
  })

  test('leaves an identifier with the parcel that holds it, and counts the conflict', async () => {
    const store = await fewParcels(engine)
    const other = await store.parcelIdOf('2001')
    await changeStoredRows(store.path, "update identifier set parcel_id = ?, is_tracking_id = 0 where value = '1001'", other)
    const report = await rebuildStore(store)
    expect(report.conflicts).toBe(1)
    expect(await storedNumber(store.path, "select parcel_id from identifier where value = '1001'")).toBe(other)
  })

  test('rebuilds only the parcels that are named', async () => {
    const store = await fewParcels(engine)
    await changeStoredRows(store.path, 'update parcel set entry_count = 9')
    const report = await rebuildStore(store, {
      parcels: [1, await store.parcelIdOf('2001'), 1_000_000_000].sort((a, b) => a - b).slice(-2),
    })
    expect(report).toMatchObject({ parcels: 1, differing: 1 })
    expect((await store.reads.inspectParcel('2001'))?.state.entryCount).toBe(1)
    expect((await store.reads.inspectParcel('1001'))?.state.entryCount).toBe(9)
  })
})

/** Leaves out what may change when a rebuild schedules a parcel again, because its latest status was wrong. */
function withoutSchedule(rows: Readonly<Record<string, readonly string[]>>): object {
  const schedule = /"(?:next_poll_at_ms|stopped)":[^,}]*/g
  // A sighting may refer to a new row of `content`.
  return {
    ...rows,
    sighting: rows.sighting?.map((row) => row.replace(/"content_id":\d+/, '')),
    parcel: rows.parcel?.map((row) => row.replace(schedule, '')),
  }
}

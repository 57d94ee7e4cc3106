import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startBatch } from '../../../src/domain/history/batch-state.ts'
import { joinDrafts } from '../../../src/domain/history/join-drafts.ts'
import { noteJoin } from '../../../src/domain/history/note-observation.ts'
import type { PollObservation, PushObservation } from '../../../src/domain/history/observation.ts'
import { parseAllAnswer } from '../../../src/domain/history/pull-response.ts'
import { recordBatch } from '../../../src/domain/history/record-batch.ts'
import type { Incoming } from '../../../src/domain/history/recording.ts'
import { createRecord } from '../../../src/flow/history/record.tx.ts'
import { createCarrierModelKeeper } from '../../../src/flow/polling/carrier-model.ts'
import { openSqliteWriter } from '../../../src/store/sqlite/sqlite.ts'
import { createSqliteWriteStore } from '../../../src/store/sqlite/sqlite-write-store.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { aPoll, aPush, pushBody } from '../../support/builders.ts'
import { countWork } from '../../support/counted-engine.ts'
import { observations } from '../../support/observations.ts'
import { strictLog } from '../../support/observed.ts'
import { deliverOptions, recordOptions } from '../../support/policy.ts'
import { addEndpoint } from '../../support/stored-endpoint.ts'
import { storedNumber, storedRows } from '../../support/stored-rows.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { incomingPush } from '../../support/write-side.ts'

const NOON = Date.UTC(2026, 2, 1, 12)
const clock = { now: () => NOON, monotonic: () => performance.now() }
const PARCELS = 100
const IDS = Array.from({ length: PARCELS }, (_, parcel) => String(100_000 + parcel))
const KEY = ['at_ms', 'has_ms', 'content_id', 'listing', 'ordinal']

const open = (path: string) => openWriteSide({ sqlitePath: path, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
/** A second that no other entry of no other parcel has. */
const timeOf = (parcel: number, entry: number) => new Date(NOON - (1 + entry * PARCELS + parcel) * 1000).toISOString()

/** Tells of what happened first to the first parcel once more, and that all of them are one. */
const namingAll = incomingPush(pushBody({ trackingIds: IDS, eventTime: timeOf(0, 0) }), NOON)

/** What recording takes of the store, on a file that was written before. */
async function recordCounted(path: string, incoming: Incoming) {
  const { engine, work } = countWork(await openSqliteWriter(path))
  const model = createCarrierModelKeeper(clock).current
  const ports = {
    store: createSqliteWriteStore(engine),
    clock,
    log: strictLog,
    model,
    learn: () => undefined,
    foundByPoll: () => undefined,
  }
  const record = createRecord(ports, recordOptions)
  const before = process.cpuUsage()
  const { outcomes } = await record([incoming])
  const { user, system } = process.cpuUsage(before)
  await engine.close()
  return { outcomes, work, cpuMs: (user + system) / 1000 }
}

test('1.4: a push that names 100 parcels joins them in sets: each is read once, and written once, not once for each that was joined before', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const entries = 20
  const writes = await open(path)
  const endpoints = [await addEndpoint(writes, NOON, { name: 'one' }), await addEndpoint(writes, NOON, { name: 'two' })]
  for (let entry = 0; entry < entries; entry++) {
    await writes.record(IDS.map((id, parcel) => incomingPush(pushBody({ trackingIds: [id], eventTime: timeOf(parcel, entry) }), NOON)))
    if (entry === 9) for (const { take } of endpoints) await take()
  }
  await writes.close()

  const { outcomes, work, cpuMs } = await recordCounted(path, namingAll)
  expect(outcomes).toMatchObject([{ kind: 'recorded', newEntries: 0, queued: 0 }])
  expect(work.rowsRead).toBeLessThan(PARCELS * (entries + 6))
  expect(work.statements).toBeLessThan(PARCELS * 3)
  expect(cpuMs).toBeLessThan(2000)
  expect(await storedRows(path, 'select kind, count(*) as count from feed group by kind')).toEqual([
    { kind: 0, count: PARCELS * entries },
    { kind: 4, count: PARCELS - 1 },
  ])
  expect(await storedRows(path, 'select count(*) as count from delivery where parcel_id != 1')).toEqual([{ count: 0 }])
  expect(await storedRows(path, 'select endpoint_id, count(*) as due from delivery where state = 1 group by endpoint_id')).toHaveLength(2)
  expect(await storedRows(path, 'select count(*) as due from delivery where state = 1')).toEqual([{ due: 2 }])
})

test('1.6: parcels that do not fit into one are not joined, and no more of them is read than shows it', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const entries = 300
  const writes = await open(path)
  for (const [parcel, id] of IDS.entries()) {
    const statuses = Array.from({ length: entries }, (_, entry) => ({ eventTimestamp: timeOf(parcel, entry) }))
    await writes.record([{ kind: 'poll', observation: aPoll({ asked: id, trackingIds: [id], statuses, askedAtMs: NOON }), watch: true }])
  }
  await writes.close()

  const { outcomes, work, cpuMs } = await recordCounted(path, namingAll)
  expect(outcomes).toEqual([{ kind: 'quarantined', reason: 'parcel_full' }])
  expect(work.rowsRead).toBeLessThan(2000 + entries + 3 * PARCELS)
  expect(work.rowsWritten).toBeLessThan(10)
  expect(cpuMs).toBeLessThan(2000)
  expect(await storedRows(path, 'select id, is_full from parcel where is_full = 1')).toEqual([{ id: 1, is_full: 1 }])
  expect(await storedRows(path, 'select count(*) as parcels from parcel')).toEqual([{ parcels: PARCELS }])
  expect(await storedRows(path, 'select reason from inbox')).toEqual([{ reason: 'parcel_full' }])
})

/** Observations of two to eight parcels that nothing joins: what is said of one is said of others too. */
const parcels = observations
  .chain((said) => fc.array(fc.subarray([...said], { minLength: 1 }), { minLength: 2, maxLength: 8 }))
  .map((all) =>
    all.flatMap((seen, at) =>
      seen.map(({ observation }): Incoming => {
        const id = `${9001 + at}`
        if (observation.kind === 'poll') return { kind: 'poll', observation: readAgain(observation, id), watch: true }
        return incomingPush(pushBody({ ...pushFieldsOf(observation), trackingIds: [id] }), NOON)
      }),
    ),
  )

/** The same answer to another question: it names nothing but what was asked for. */
function readAgain({ body, language, askedAtMs }: PollObservation, asked: string): PollObservation {
  const answer = Buffer.from(JSON.stringify({ ...JSON.parse(String(body)), trackingIds: [] }))
  const reading = parseAllAnswer(answer, { asked, language, contentLanguage: null, askedAtMs })
  if (!reading.ok) throw new Error(reading.reason)
  return reading.observation
}

function pushFieldsOf({ sighting }: PushObservation) {
  const { status, detailedStatus, instant, location } = sighting
  const texts = Object.fromEntries(Object.entries(sighting.texts).map(([language, { detailed }]) => [language, detailed ?? '']))
  return { status, detailedStatus, eventTime: instant.text, location, texts }
}

/** Joins parcels as a push that names them all would, but keeps no such push. */
async function joinInto(path: string, groups: (ids: readonly number[]) => Iterable<readonly number[]>): Promise<void> {
  const engine = await openSqliteWriter(path)
  const ids = (await storedRows<{ id: number }>(path, 'select id from parcel order by id')).map(({ id }) => id)
  const identifiers = await storedRows<{ parcel_id: number; value: string }>(path, 'select parcel_id, value from identifier')
  const names = new Map(identifiers.map((row) => [row.parcel_id, row.value]))
  await createSqliteWriteStore(engine).transaction(async (tx) => {
    for (const group of groups(ids)) {
      const naming = pushBody({ trackingIds: group.map((id) => names.get(id)), eventTime: '2026-03-01T10:00:00.000Z' })
      const pushed = recordBatch([incomingPush(naming, NOON)], NOON)
      const snapshot = { ...(await tx.loadSnapshot(pushed)), model: createCarrierModelKeeper(clock).current() }
      const batch = startBatch(snapshot, NOON)
      const joined = joinDrafts(batch, group, aPush({ trackingIds: ['9001'], eventTime: '2026-03-01T10:00:00.000Z' }), NOON)
      if (joined === null) throw new Error('the parcels do not fit into one')
      noteJoin(batch, joined)
      await tx.applyChanges({ ...batch, recorded: [], failures: [] })
    }
  })
  await engine.close()
}

/** All that a join moves, in an order of its own. */
async function contentsOf(path: string): Promise<readonly (readonly string[])[]> {
  const tables = ['parcel', 'identifier', 'sighting', 'answer', 'inbox', 'delivery', 'expected_push']
  const rows = await Promise.all(tables.map((table) => storedRows(path, `select * from ${table}`)))
  return rows.map((of) => of.map((row) => JSON.stringify(row)).sort())
}

test('1.4: joined at once, many parcels become what they become one at a time, in whatever order', async () => {
  const folder = temporaryFolder()
  let file = 0
  let shared = 0
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(parcels, fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))),
      async ([all, random]) => {
        const [atOnce, oneByOne] = [join(folder, `${file++}.db`), join(folder, `${file++}.db`)]
        const writes = await open(atOnce)
        const endpoint = await addEndpoint(writes, NOON, { backfill: true })
        for (const [at, one] of all.entries()) {
          await writes.record([one])
          if (at === 3) await endpoint.take()
        }
        await writes.close()
        copyFileSync(atOnce, oneByOne)
        const count = (place: string, table: string) => storedNumber(place, `select count(*) from ${table}`)
        const sightings = await count(atOnce, 'sighting')

        await joinInto(atOnce, (ids) => [ids])
        await joinInto(oneByOne, function* (ids) {
          const left = [...ids]
          const draw = () => left.splice(Math.floor(Number(random.next().value) * left.length), 1)[0] ?? 0
          while (left.length > 1) {
            const pair = [draw(), draw()].sort((a, b) => a - b)
            yield pair
            left.push(pair[0] ?? 0)
          }
        })
        expect(await contentsOf(atOnce)).toEqual(await contentsOf(oneByOne))
        expect(await count(atOnce, 'audit')).toBe(await count(oneByOne, 'audit'))
        if ((await count(atOnce, 'sighting')) < sightings) shared++
      },
    ),
    { numRuns: 25, seed: 20261124 },
  )
  expect(shared).toBeGreaterThan(15)
}, 120_000)

test('1.4: the audit trail has what each parcel held before they were joined at once', async () => {
  const folder = temporaryFolder()
  let file = 0
  await fc.assert(
    fc.asyncProperty(parcels, async (all) => {
      const path = join(folder, `${file++}.db`)
      const writes = await open(path)
      for (const one of all) await writes.record([one])
      await writes.close()
      const held = Map.groupBy(await storedRows<Record<string, number>>(path, 'select * from sighting'), (row) => row.parcel_id ?? 0)
      const before = [...held].map(
        ([parcelId, rows]) =>
          [parcelId, rows.map((row) => [KEY.map((name) => row[name]).join('/'), row.asked_at_ms, row.sequence, row.told])] as const,
      )
      const byValue = 'select parcel_id, value from identifier order by value'
      const identifiers = await storedRows<{ parcel_id: number; value: string }>(path, byValue)
      await joinInto(path, (ids) => [ids])

      const audit = await storedRows<{ detail: string }>(path, 'select detail from audit order by sequence')
      const trail = audit.map(({ detail }) => JSON.parse(detail))
      const told = new Map<number, unknown>(trail.map(({ from, sightings }) => [from.parcelId, sightings]))
      told.set(1, trail[0]?.stayed)
      for (const [parcelId, rows] of before) expect([parcelId, told.get(parcelId)]).toEqual([parcelId, rows])
      for (const { from, identifiers: values } of trail) {
        expect(values).toEqual(identifiers.filter((row) => row.parcel_id === from.parcelId).map(({ value }) => value))
      }
    }),
    { numRuns: 15, seed: 20261124 },
  )
}, 120_000)

test('7.1: of entries that a join sets apart the pushes are read once, not once for each', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const seconds = 30
  const writes = await open(path)
  await addEndpoint(writes, NOON)
  for (let at = 0; at < seconds; at++) {
    const second = timeOf(0, at).slice(0, -5)
    // Said without a place, it is taken for what happened in Lund, until an earlier one shows otherwise.
    for (const [id, time, location] of [
      ['1001', '.000', null],
      ['1001', '.100', 'Lund'],
      ['2002', '.050', 'Umeå'],
    ] as const) {
      await writes.record([incomingPush(pushBody({ trackingIds: [id], eventTime: `${second}${time}Z`, location }), NOON)])
    }
  }
  await writes.close()
  const naming = pushBody({ trackingIds: ['1001', '2002'], eventTime: new Date(NOON).toISOString() })
  const { outcomes, work } = await recordCounted(path, incomingPush(naming, NOON))
  expect(outcomes).toMatchObject([{ kind: 'recorded', queued: seconds + 1 }])
  expect(work.rowsRead).toBeLessThan(3 * seconds * 4)
})

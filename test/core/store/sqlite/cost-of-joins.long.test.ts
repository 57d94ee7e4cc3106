import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import type { Incoming } from '../../../../src/core/domain/history/recording.ts'
import { createRecord } from '../../../../src/core/flow/history/record.tx.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import { openSqliteWriter } from '../../../../src/core/store/sqlite/sqlite.ts'
import { createSqliteWriteStore } from '../../../../src/core/store/sqlite/sqlite-write-store.ts'
import { SQLITE_HOOKS } from '../../../../src/upkeep/sqlite-engine.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { strictLog } from '../../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { countWork } from '../../../support/store/counted-engine.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

// These tests run on SQLite alone, because only its engine reports statements and rows.

const clock = { now: () => NOON, monotonic: () => performance.now() }
const PARCELS = 100
const IDS = Array.from({ length: PARCELS }, (_, parcel) => String(100_000 + parcel))

const open = (path: string) => openWriteSide({ sqlitePath: path, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
/** Returns a second that no other entry of any parcel has. */
const timeOf = (parcel: number, entry: number) => new Date(NOON - (1 + entry * PARCELS + parcel) * 1000).toISOString()

/** A push that repeats the first event of the first parcel, and names the identifiers of all parcels. */
const namingAll = incomingPush(pushBody({ trackingIds: IDS, eventTime: timeOf(0, 0) }), NOON)

async function recordCounted(path: string, incoming: Incoming) {
  const { engine, work } = countWork(await openSqliteWriter(path, SQLITE_HOOKS))
  const model = createCarrierModelKeeper(clock).current
  const ports = {
    store: createSqliteWriteStore(engine),
    clock,
    log: strictLog,
    model,
    learn: () => undefined,
    foundByPoll: () => undefined,
    tombstoneKey: () => null,
  }
  const record = createRecord(ports, recordOptions)
  const before = process.cpuUsage()
  const { outcomes } = await record([incoming])
  const { user, system } = process.cpuUsage(before)
  await engine.close()
  return { outcomes, work, cpuMs: (user + system) / 1000 }
}

test('1.4: a push that names 100 parcels joins them with fewer than 300 statements', async () => {
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

test('1.6: a join that would give a parcel too many entries is refused, and reads few entries', async () => {
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

test('7.1: if a join splits many entries, their pushes are read together, not one by one', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const seconds = 30
  const writes = await open(path)
  await addEndpoint(writes, NOON)
  for (let at = 0; at < seconds; at++) {
    const second = timeOf(0, at).slice(0, -5)
    // The push without a location shares an entry with Lund. After the join it shares one with Umeå, which is earlier.
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

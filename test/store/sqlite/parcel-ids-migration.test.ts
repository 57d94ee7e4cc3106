import { join } from 'node:path'
import { expect, test } from 'vitest'
import { uniqueParcelIds } from '../../../src/store/sqlite/migrations/0006-unique-parcel-ids.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { pushBody } from '../../support/builders.ts'
import { strictLog } from '../../support/observed.ts'
import { deliverOptions, recordOptions } from '../../support/policy.ts'
import { changeStoredRows, storedRows } from '../../support/stored-rows.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { incomingPush, openStore } from '../../support/write-side.ts'
import { migrateAnew } from './taken-back.ts'

const NOON = Date.UTC(2026, 2, 1, 12)
const inEnglish = (trackingIds: readonly string[], hour = '10') =>
  ({ trackingIds, texts: { en: 'Arrived' }, eventTime: `2026-03-01T${hour}:00:00.000Z` }) as const

test('1.4: the id of the newest parcel is not given again when it was joined away, nor what is remembered of it', async () => {
  const { push, writes, reads } = await openStore(NOON)
  await push(inEnglish(['1001']))
  await push(inEnglish(['2002']))
  const newest = await reads.findParcel('2002')
  await writes.noteLanguageAsked({ parcelId: newest?.parcelId ?? 0, language: 'sv', knownTo: 0, answer: null })
  await push(inEnglish(['1001', '2002'], '11'))
  await push(inEnglish(['3003']))
  const next = await reads.findParcel('3003')
  expect(next?.parcelId).toBeGreaterThan(newest?.parcelId ?? 0)
  expect(next?.languagesAsked).toEqual([])
})

test('1.4: a store from before gives no id again that it ever gave, and keeps the parcels it has', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const clock = { now: () => NOON, monotonic: () => 0 }
  const open = () => openWriteSide({ sqlitePath: path, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
  const before = await open()
  const push = (trackingIds: readonly string[], hour?: string) => incomingPush(pushBody(inEnglish(trackingIds, hour)), NOON)
  await before.record([push(['1001']), push(['2002']), push(['3003']), push(['2002', '3003'], '11')])
  await before.close()
  const parcels = await migrateAnew(path, UNCOUNTED, uniqueParcelIds, 'select * from parcel order by id')

  // The column is of a later schema, which the store says it has already.
  await changeStoredRows(path, 'alter table parcel add column latest_learnt_at_ms integer')
  const after = await open()
  await after.record([push(['4004'])])
  await after.close()
  const kept = await storedRows<{ id: number }>(path, 'select * from parcel order by id')
  expect(kept.slice(0, -1)).toMatchObject(parcels)
  expect(kept.map(({ id }) => id)).toEqual([1, 2, 4])
})

/** The table of parcels as a relay of the schema before left it. */
const UNCOUNTED = `
  alter table parcel drop column latest_learnt_at_ms;
  create table old_parcel (id integer primary key, watched_at_ms integer, first_pushed_at_ms integer, revived_at_ms integer not null,
    entry_count integer not null, latest_status text, latest_at_ms integer, heard_at_ms integer, checked_at_ms integer,
    failures integer not null, next_poll_at_ms integer, stopped text, is_full integer not null);
  insert into old_parcel select * from parcel;
  drop table parcel;
  alter table old_parcel rename to parcel`

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { writeSeededStore } from '../../../support/store/seeded-store.ts'
import { hashTables } from './table-hashes.ts'

const CHECKED_IN: unknown = JSON.parse(readFileSync(new URL('table-hashes.json', import.meta.url), 'utf8'))

async function seededStore(): Promise<string> {
  const path = join(temporaryFolder(), 'relay.db')
  await writeSeededStore(path)
  return path
}

/** Each change affects one row of one table, and often only the type of a value. */
const PLANTED: Readonly<Record<string, string>> = {
  age_mark: 'update age_mark set sequence = sequence + 1',
  answer: 'update answer set is_flawed = 1 - is_flawed where body = (select min(body) from answer)',
  attempt: "update attempt set reason = '' where id = (select min(id) from attempt where reason is null)",
  audit: "update audit set detail = detail || ' ' where sequence = (select min(sequence) from audit)",
  composed_event: 'update composed_event set body = cast(body as text) where sequence = (select min(sequence) from composed_event)',
  content: 'update content set json = cast(json as blob) where id = (select min(id) from content)',
  delivery: 'update delivery set settled_at_ms = 0 where id = (select min(id) from delivery where settled_at_ms is null)',
  ended_session: "insert into ended_session (session, until_ms) values ('', 0)",
  endpoint: "update endpoint set disabled = '' where id = (select min(id) from endpoint where disabled is null)",
  erasure: "delete from erasure where identifier = 'ERASED0001'",
  event_value: "insert into event_value (member, value) values ('', '')",
  expected_push: 'delete from expected_push where entry = (select max(entry) from expected_push)',
  failure: 'update failure set count = count + 1 where delivery_id = (select min(delivery_id) from failure)',
  feed: 'update feed set earlier_audience = earlier_audience + 1 where sequence = (select max(sequence) from feed)',
  identifier: 'update identifier set refused_at_ms = 0 where value = (select min(value) from identifier where refused_at_ms is null)',
  inbox: "update inbox set reason = '' where id = (select max(id) from inbox where reason is null)",
  job: 'update job set done = done + 1',
  language_asked: "insert into language_asked (parcel_id, language, sequence) values (0, '', 0)",
  operator_action: 'update operator_action set address = null',
  operator_event: "update operator_event set detail = detail || ' ' where id = (select min(id) from operator_event)",
  order_context: 'update order_context set sequence = sequence + 1',
  overwritten: 'update overwritten set nth = nth + 1 where nth = (select max(nth) from overwritten)',
  parcel: 'update parcel set failures = failures + 1 where id = (select max(id) from parcel)',
  parcel_status: "insert into parcel_status (status) values ('')",
  quarantine_count: 'update quarantine_count set count = count + 1 where id = (select min(id) from quarantine_count)',
  refusal: 'update refusal set key_name = null',
  refused_pushes: 'update refused_pushes set pushes = pushes + 1 where pushes is not null',
  report_evidence: "insert into report_evidence (name, id, day, parcel_id) values ('', 0, 0, 0)",
  report_note: 'update report_note set at_ms = at_ms + 1 where id = (select min(id) from report_note)',
  setting: "update setting set value = value || x'00' where name = 'push-channel'",
  sighting: 'update sighting set audience = audience + 1 where sequence = (select min(sequence) from sighting)',
  sqlite_sequence: "update sqlite_sequence set seq = seq + 1 where name = 'parcel'",
  tally: "insert into tally values ('hour', 'pushes', 0, '{}')",
  tombstone: 'update tombstone set erased_at_ms = 0',
  trouble: 'update trouble set since_ms = since_ms + 1',
  watchdog_breach: "insert into watchdog_breach (id, parcel_id, rule, since_ms, is_checked, told_at_ms) values (0, 0, '', 0, 0, 0)",
  watchdog_due: 'insert into watchdog_due (parcel_id, due_at_ms, is_open) values (0, 0, 0)',
}

test('each table of a seeded store has the hash in table-hashes.json', async () => {
  expect(hashTables(await seededStore())).toEqual(CHECKED_IN)
})

test('a change of one row changes the hash of its table, and of no other', async () => {
  const path = await seededStore()
  const db = new Database(path)
  onTestFinished(() => void db.close())
  let before = hashTables(path)
  expect(Object.keys(PLANTED)).toEqual(Object.keys(before))
  for (const [table, change] of Object.entries(PLANTED)) {
    expect([table, db.prepare(change).run().changes]).toEqual([table, 1])
    const after = hashTables(path)
    // The first row of a table also begins its sequence.
    const changed = Object.keys(after).filter((name) => after[name] !== before[name] && (name === table || name !== 'sqlite_sequence'))
    expect(changed).toEqual([table])
    before = after
  }
})

test('a secret that a store generates is not hashed', () => {
  const path = join(temporaryFolder(), 'settings.db')
  const db = new Database(path)
  onTestFinished(() => void db.close())
  db.exec("create table setting (name text primary key, value blob) without rowid; insert into setting values ('sequence', x'31')")
  const before = hashTables(path)
  db.exec("insert into setting values ('token-key', x'01'), ('relay-id', x'02')")
  expect(hashTables(path)).toEqual(before)
})

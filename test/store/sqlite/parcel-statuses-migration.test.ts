import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parsePush } from '../../../src/domain/ingest/parse-push.ts'
import { createReadStore } from '../../../src/store/read-store.ts'
import { openSqliteReader } from '../../../src/store/sqlite/sqlite.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { pushBody } from '../../support/builders.ts'
import { deliverOptions, recordOptions } from '../../support/policy.ts'
import { changeStoredRows } from '../../support/stored-rows.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const NOW = Date.UTC(2026, 2, 1, 12)
const clock = { now: () => NOW, monotonic: () => performance.now() }
const log = { error: (fields: object) => expect.unreachable(JSON.stringify(fields)) }

/** The columns that later schemas add. */
const LATER = [
  ['parcel', 'latest_learnt_at_ms'],
  ['sighting', 'learnt_at_ms'],
  ['endpoint', 'disabled_at_ms'],
  ['endpoint', 'disabled_by'],
  ['endpoint', 'refused_from'],
  ['endpoint', 'refused_at_ms'],
  ['endpoint', 'backfill_earlier'],
  ['endpoint', 'alarmed_at_ms'],
  ['job', 'end_told'],
]

test('every status that was the latest of a parcel is known, those of a store from before it was written down too', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const open = () => openWriteSide({ sqlitePath: path, record: recordOptions, deliver: deliverOptions }, clock, log)
  const statuses = async () => {
    const reads = createReadStore(openSqliteReader(path))
    const found = await reads.listStatuses()
    await reads.close()
    return found
  }
  const push = (status: string, id: string) =>
    parsePush({ body: pushBody({ status, trackingIds: [id] }), contentEncoding: null, receivedAtMs: NOW, keyIndex: 0 })
  const writes = await open()
  await writes.record([push('Created', '1001'), push('Ingested', '1002')])
  await writes.record([push('Created', '1003')])
  expect(await statuses()).toEqual(['Created', 'Ingested'])
  await writes.close()

  await changeStoredRows(path, 'drop table parcel_status')
  for (const index of ['delivery_skipped', 'delivery_by_time', 'job_end_untold', 'inbox_by_reason', 'inbox_dismissed'])
    await changeStoredRows(path, `drop index ${index}`)
  for (const table of ['operator_event', 'operator_action', 'trouble', 'quarantine_count', 'failure', 'tally'])
    await changeStoredRows(path, `drop table ${table}`)
  for (const [table, column] of LATER) await changeStoredRows(path, `alter table ${table} drop column ${column}`)
  await changeStoredRows(path, "delete from kysely_migration where name >= '0011'")
  const again = await open()
  expect(await statuses()).toEqual(['Created', 'Ingested'])
  await again.record([push('Teleported', '1004')])
  expect(await statuses()).toEqual(['Created', 'Ingested', 'Teleported'])
  await again.close()
})

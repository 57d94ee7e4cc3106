import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { COLUMNS } from '../../src/insight/export/flat-rows.rules.ts'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { documentedCommands, failedOf, typeInShell } from '../support/docs/shell-session.ts'
import { pushBody } from '../support/history/builders.ts'
import { queryDuckDb } from '../support/insight/duckdb.ts'
import { CSV_OPTIONS, faultsIn, rowsIn } from '../support/insight/exported.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN, ask, logIn, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

afterAll(closeOpened)

const PAGE = 'docs/insight.md'

test('docs/insight.md describes every column of an export, in order, with its type', () => {
  const rows = [...readFileSync(PAGE, 'utf8').matchAll(/^\| `(\w+)` \| (integer|string|boolean|timestamp|json) \|/gm)]
  expect(rows.map(([, name, type]) => ({ name, type }))).toEqual(COLUMNS)
})

test('docs/insight.md reads CSV as the tests do', () => {
  const [, options = ''] = /^`read_csv\(getvariable\('files'\), (.*), columns = \{\.\.\.\}\)`/m.exec(readFileSync(PAGE, 'utf8')) ?? []
  expect(options).toBe(CSV_OPTIONS)
})

testWith('bash')('the lines of docs/insight.md export a feed, and its query reads the latest statuses', async () => {
  const carrier = await openCarrier()
  const watchdogs = [{ name: 'on-its-way', when: { status: ['DeliveryStarted'] }, until: [], past: true }]
  const relay = await relayOfTest({ watchdogs }, { carrierUrl: carrier.url })
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'bin'))
  const { args, env } = shipped()
  const program = ['#!/bin/sh', `exec ${[process.execPath, ...args].map((word) => `'${word}'`).join(' ')} "$@"`, ''].join('\n')
  writeFileSync(join(folder, 'bin', 'parcel-relay'), program, { mode: 0o755 })
  const at = (hour: number) => `2026-03-01T1${hour}:00:00.000Z`
  await push(relay.publicUrl, pushBody({ trackingIds: ['95000001'], status: 'Created', eventTime: at(0) }))
  await push(relay.publicUrl, pushBody({ trackingIds: ['95000001'], status: 'DeliveryStarted', eventTime: at(2) }))
  await push(relay.publicUrl, pushBody({ trackingIds: ['95000001'], status: 'Ingested', eventTime: at(1) }))
  await push(relay.publicUrl, pushBody({ trackingIds: ['95000002'], status: 'Ingested', eventTime: at(3) }))
  await push(relay.publicUrl, pushBody({ trackingIds: ['95000002', '95000003'], status: 'Delivered', eventTime: at(4) }))
  const operate = await operatorOf(relay)
  await vi.waitFor(async () => expect((await operate('GET', '/relay/watchdogs')).body).toMatchObject({ watchdogs: [{ open: 1 }] }), 30_000)
  const commands = documentedCommands(PAGE, 'export').map((command) => command.replace('http://127.0.0.1:8081', relay.internalUrl))
  const path = `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH ?? ''}`
  const typed = await typeInShell(commands, { cwd: folder, env: { ...env, PATH: path, HOME: folder }, answers: [ADMIN.password] })
  expect(failedOf(typed)).toEqual([])
  expect(typed.length).toBeGreaterThan(5)

  const [, sql = ''] = /^```sql\n(.*?)^```$/ms.exec(readFileSync(PAGE, 'utf8')) ?? []
  const statements = sql.replaceAll("'warehouse/", `'${folder}/warehouse/`).split(';\n')
  const [files = '', view = '', query = ''] = statements.map((statement) => statement.trim())
  const token = await logIn(relay.internalUrl)
  const latest = async (id: string) => Object(await (await ask(relay.internalUrl, token, `/v1/status/${id}/latest`)).json())
  const expected = await Promise.all(['95000001', '95000002'].map(latest))
  const found = await queryDuckDb(query, "set timezone = 'UTC'", files, view)
  expect(found.map(({ status }) => status)).toEqual(expected.map(({ status: entry }) => entry.status))
  expect(found.map(({ event_timestamp: time }) => Date.parse(`${String(time)}:00`))).toEqual([at(2), at(4)].map((time) => Date.parse(time)))
  const stalled = "select watchdog_rule, watchdog_since is not null as is_dated, watchdog_checked from events where kind = 'stalled'"
  expect(await queryDuckDb(stalled)).toEqual([{ watchdog_rule: 'on-its-way', is_dated: true, watchdog_checked: true }])
  const folders = ['warehouse', 'warehouse-csv', 'warehouse-parquet'].map((name) => join(folder, name))
  // Parquet has times; in the others they stand as the carrier wrote them.
  const isTime = (at: number) => COLUMNS[at]?.type === 'timestamp'
  const read = async (path: string) =>
    (await rowsIn(path)).map((row) => row.map((value, at) => (isTime(at) && typeof value === 'string' ? Date.parse(value) : value)))
  const [rows, ...others] = await Promise.all(folders.map(read))
  expect(others).toEqual([rows, rows])
  expect(rows?.length).toBeGreaterThan(4)
  const [, reader = ''] = /^`(read_parquet\(.*\))`$/m.exec(readFileSync(PAGE, 'utf8')) ?? []
  const inParquet = await queryDuckDb(`select count(*) as rows from ${reader}`, files.replaceAll('/warehouse/', '/warehouse-parquet/'))
  expect(inParquet.map(({ rows: count }) => Number(count))).toEqual([rows?.length])
  expect(folders.flatMap(faultsIn)).toEqual([])
})

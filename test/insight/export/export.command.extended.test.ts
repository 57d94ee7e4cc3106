import { spawn } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openExportFolder } from '../../../src/insight/export/export-folder.ts'
import { pushBody } from '../../support/history/builders.ts'
import { faultsIn, manifestIn, rowsIn } from '../../support/insight/exported.ts'
import { fetchDocumented } from '../../support/portal/api-document.ts'
import { ADMIN, logIn, push, SHOP } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { commandsOf, operatorEnv, runCommand } from '../../support/relay/run-command.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'
import { pruneStoredFeed } from '../../support/store/stored-rows.ts'

const at = (minute: number, ...trackingIds: readonly string[]) =>
  pushBody({ eventTime: `2026-03-01T10:${String(minute).padStart(2, '0')}:00.000Z`, trackingIds })

test('export writes what is new to files, then goes on, and takes the rows of erased parcels out again', async () => {
  const relay = await relayOfTest({ serve: { fetchUnknown: false } })
  const run = commandsOf(relay)
  const folder = join(temporaryFolder(), 'warehouse')
  for (const [nth, id] of ['94000001', '94000002', '94000003'].entries()) await push(relay.publicUrl, at(nth, id))
  const first = await run('export', '--to', folder, '--format', 'csv', '--rows', '2')
  expect(first).toMatchObject({ code: 0, stdout: `${folder}: 3 rows in 2 new files, up to sequence 3.\n` })
  await push(relay.publicUrl, at(9, '94000001', '94000002'))
  // An app that may only read the status needs no other scope.
  const asShop = { ...operatorEnv(relay), RELAY_USERNAME: SHOP.username, RELAY_PASSWORD: SHOP.password }
  const second = await runCommand(['export', '--to', folder, '--json'], asShop)
  expect(JSON.parse(second.stdout)).toMatchObject({
    to: folder,
    format: 'csv',
    after: 3,
    rows: 5,
    files: [expect.any(String)],
    rewoundRows: 0,
  })
  expect(await run('export', '--to', folder)).toMatchObject({ code: 0, stdout: `${folder}: nothing is new after sequence 5.\n` })
  expect((await rowsIn(folder)).map((row) => row[2])).toEqual([
    'entry',
    'entry',
    'entry',
    'join',
    'join_entry',
    'join_entry',
    'join_entry',
    'entry',
  ])

  const authorization = `Bearer ${await logIn(relay.internalUrl, ADMIN)}`
  expect(
    (await fetchDocumented(`${relay.internalUrl}/relay/parcels/94000001`, { method: 'DELETE', headers: { authorization } })).status,
  ).toBe(200)
  expect(await run('export', '--apply-erasures', folder)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('no row of an erased parcel is left'),
  })
  await run('export', '--to', folder)
  const applied = await run('export', '--apply-erasures', folder)
  expect(applied).toMatchObject({ code: 0, stdout: expect.stringMatching(/: 7 rows of erased parcels went; 2 files written anew\.\n$/) })
  expect((await rowsIn(folder)).map((row) => row[2])).toEqual(['entry', 'erased'])
  expect(faultsIn(folder)).toEqual([])
})

test('export says why it cannot go on, and keeps what it has', async () => {
  const [relay, other] = [await relayOfTest(), await relayOfTest()]
  const run = commandsOf(relay)
  const folder = temporaryFolder()
  const refused = async (...args: readonly string[]) => {
    const { code, stderr } = await run('export', ...args)
    expect(code).toBe(1)
    return stderr
  }
  for (const minute of [1, 2]) await push(relay.publicUrl, at(minute, '94000004'))
  await push(other.publicUrl, at(1, '94000004'))
  await run('export', '--to', folder)
  const before = [readdirSync(folder), manifestIn(folder)]
  expect(await refused('--to', folder, '--format', 'csv')).toMatch(
    /the folder holds ndjson, not csv.* What was exported before is as it was\.\n$/,
  )
  expect(await refused('--to', folder, '--url', other.internalUrl)).toContain('the folder holds an export of the relay')
  const held = openExportFolder(folder, false)
  expect(await refused('--to', folder)).toContain(`another export is at work in ${folder}, pid ${process.pid}`)
  expect(await refused('--apply-erasures', folder)).toContain('another export is at work')
  held.close()
  const file = join(temporaryFolder(), 'file')
  writeFileSync(file, '')
  expect(await refused('--to', file)).toContain('a part of its path is not a folder')
  expect(await refused('--to', '/proc/warehouse')).toContain('/proc/warehouse: there is no such file or folder')
  const nothing = join(temporaryFolder(), 'nothing')
  expect(await refused('--apply-erasures', nothing)).toContain(nothing)
  expect(readdirSync(join(nothing, '..'))).toEqual([])
  for (const minute of [3, 4]) await push(relay.publicUrl, at(minute, '94000004'))
  await pruneStoredFeed(relay.databasePath, 3)
  expect(await refused('--to', folder)).toMatch(/no longer has the events from sequence 3 to 3 .*Export into a new folder/)
  expect([readdirSync(folder), manifestIn(folder)]).toEqual(before)
})

test('options that belong to no folder or to two are usage errors', async () => {
  const run = commandsOf({ internalUrl: 'http://127.0.0.1:9' })
  for (const args of [[], ['--to', 'a', '--apply-erasures', 'b'], ['--to', 'a', '--rows', '0'], ['--to', 'a', '--format', 'xml']])
    expect(await run('export', ...args)).toMatchObject({ code: 2, stdout: '' })
})

test('an export that is killed leaves its folder to the next one', async () => {
  const relay = await relayOfTest()
  await push(relay.publicUrl, at(1, '94000005'))
  const folder = temporaryFolder()
  const holder = tieToTest(
    spawn(process.execPath, ['--input-type=module', '-e', HOLD], {
      ...ownGroup,
      cwd: process.cwd(),
      env: { ...process.env, FOLDER: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  let said = ''
  holder.stdout.on('data', (chunk) => {
    said += String(chunk)
  })
  await vi.waitFor(() => expect(said).toContain('holds'), { timeout: 60_000 })
  const run = commandsOf(relay)
  expect((await run('export', '--to', folder)).stderr).toContain(`another export is at work in ${folder}, pid ${holder.pid}`)
  const ended = new Promise((resolve) => holder.once('exit', resolve))
  holder.kill('SIGKILL')
  await ended
  expect(await run('export', '--to', folder)).toMatchObject({ code: 0 })
  expect(faultsIn(folder)).toEqual([])
  expect(await rowsIn(folder)).toHaveLength(1)
})

/** Begins a file as an export does, and waits. */
const HOLD = `
  const { openExportFolder } = await import('./src/insight/export/export-folder.ts')
  const folder = openExportFolder(process.env.FOLDER, true)
  const file = await folder.begin('ndjson')
  file.add([[1, 0, 'entry', '7']], 1)
  console.log('holds')
  setInterval(() => undefined, 1000)`

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { pushBody } from '../../support/history/builders.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, push, startTestRelay, writeConfig } from '../../support/relay/relay.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { tablesThatHold } from '../../support/store/all-rows.ts'
import { exportTombstones } from '../../support/store/export-tombstones.ts'
import { copyDatabase, createDatabase } from '../../support/store/postgres-database.ts'
import { changeStoredRows, storedNumber } from '../../support/store/stored-rows.ts'

const run = promisify(execFile)

async function mark(folder: string, ...args: readonly string[]) {
  const { args: relay, env } = shipped()
  return await run(process.execPath, [...relay, 'restore', '--config', join(folder, 'relay.yaml'), ...args], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

test('after restore --mark a database continues with numbers that were never used', async () => {
  const { url } = await createDatabase('nothing')
  const folder = temporaryFolder()
  const sections = await onPostgres(url)
  const relay = await startTestRelay(folder, NO_CARRIER, sections)
  expect((await push(relay.publicUrl, pushBody({ trackingIds: ['1001'] }))).status).toBe(200)
  const used = await mark(folder, '--mark', '--last', '50', '--forget-erasures')
  expect([used.code, used.stderr]).toEqual([1, expect.stringContaining('relays use')])
  const ended = await logIn(relay.internalUrl, ADMIN)
  await relay.stop()

  const tooHigh = await mark(folder, '--mark', '--last', '999999999999999', '--forget-erasures')
  expect([tooHigh.code, tooHigh.stderr]).toEqual([1, expect.stringContaining('a relay counts to 100000000000000')])
  expect(await storedNumber(url, "select value from counter where name = 'sequence'")).toBeLessThan(1e9)
  expect(await mark(folder, '--mark')).toMatchObject({ code: 2, stderr: expect.stringContaining('--mark needs --last N') })
  expect(await mark(folder)).toMatchObject({ code: 2, stderr: expect.stringContaining('name the file of the backup') })
  expect(await mark(folder, '--mark', '--last', '50')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--mark needs --tombstones'),
  })
  await changeStoredRows(url, "insert into quarantine_count (at_ms, reason, count) values (1000, 'tracking_id', 1)")
  const marked = await mark(folder, '--mark', '--last', '50', '--forget-erasures')
  expect(await storedNumber(url, 'select count(*) from quarantine_count')).toBe(0)
  expect([marked.code, marked.stdout], marked.stderr).toEqual([0, expect.stringContaining('Sequences go on after 1000000000')])

  const again = await startTestRelay(folder, NO_CARRIER, sections)
  expect((await ask(again.internalUrl, ended, '/relay/events?after=0')).status).toBe(401)
  const operator = await operatorOf(again)
  const shop = await operator('POST', '/relay/endpoints', { name: 'shop', url: 'http://10.0.0.1/', enabled: false })
  expect(Number(shop.body.id)).toBeGreaterThan(1e9)
  expect((await push(again.publicUrl, pushBody({ trackingIds: ['1002'] }))).status).toBe(200)
  for (const table of ['parcel', 'inbox', 'delivery'])
    expect([table, await storedNumber(url, `select max(id) from ${table}`)]).toEqual([
      table,
      expect.toSatisfy((id: number) => id >= 1e9 && id < 1.1e9),
    ])
  expect(await storedNumber(url, 'select max(sequence) from feed')).toBeGreaterThan(1e9)
  const token = await logIn(again.internalUrl, ADMIN)
  const gone = await ask(again.internalUrl, token, '/relay/events?after=40')
  expect([gone.status, await gone.json()]).toMatchObject([410, { type: 'urn:parcel-relay:error:feed_rewound' }])
  expect((await operator('GET', '/relay/audit')).body).toMatchObject({
    actions: expect.arrayContaining([expect.objectContaining({ action: 'store.restored' })]),
  })
  await again.stop()
  expect(await mark(folder, '--mark', '--last', '1', '--forget-erasures')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('go on after 2000000000'),
  })
  await (await postgres.openWriteStore(url)).close()
})

test('after a point-in-time recovery everything that was erased later is erased again', async () => {
  const { url } = await createDatabase('nothing')
  const folder = temporaryFolder()
  const sections = await onPostgres(url)
  const relay = await startTestRelay(folder, NO_CARRIER, sections)
  for (const id of ['GONE0001', 'KEPT0001'])
    expect((await push(relay.publicUrl, pushBody({ trackingIds: [id], texts: { en: `about ${id}` } }))).status).toBe(200)
  await relay.stop()
  const recovered = await copyDatabase(url)

  const onward = await startTestRelay(folder, NO_CARRIER, sections)
  const forget = await operatorOf(onward)
  expect((await forget('DELETE', '/relay/parcels/GONE0001')).status).toBe(200)
  await onward.stop()
  const file = join(folder, 'relay.tombstones')
  await exportTombstones(url, file)

  const there = await onPostgres(recovered)
  writeConfig(folder, NO_CARRIER, there)
  expect(await mark(folder, '--mark', '--last', '50', '--tombstones', join(folder, 'none'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('does not exist'),
  })
  const otherKey = { ...there, secrets: { atRestKeys: [Buffer.alloc(32, 3).toString('base64')] } }
  writeConfig(folder, NO_CARRIER, otherKey)
  expect(await mark(folder, '--mark', '--last', '50', '--tombstones', file)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no key in secrets.atRestKeys opens'),
  })
  expect(await storedNumber(recovered, "select count(*) from setting where name = 'restores'")).toBe(0)
  writeConfig(folder, NO_CARRIER, there)
  const marked = await mark(folder, '--mark', '--last', '50', '--tombstones', file)
  expect([marked.code, marked.stderr]).toEqual([0, ''])
  expect((await tablesThatHold(recovered, ['GONE0001'])).length).toBeGreaterThan(0)

  const again = await startTestRelay(folder, NO_CARRIER, there)
  expect(await tablesThatHold(recovered, ['GONE0001'])).toEqual([])
  const token = await logIn(again.internalUrl, ADMIN)
  expect((await ask(again.internalUrl, token, '/v1/status/GONE0001/latest')).status).toBe(404)
  expect((await ask(again.internalUrl, token, '/v1/status/KEPT0001/latest')).status).toBe(200)
  expect((await push(again.publicUrl, pushBody({ trackingIds: ['GONE0001'] }))).status).toBe(200)
  expect(await storedNumber(recovered, 'select count(*) from inbox')).toBe(1)
  await again.stop()
  // The next start has nothing left to erase.
  const quiet = await startTestRelay(folder, NO_CARRIER, there)
  expect(await storedNumber(recovered, 'select count(*) from parcel')).toBe(1)
  await quiet.stop()
})

test('restore --mark is refused for a store in a file', async () => {
  const folder = temporaryFolder()
  writeConfig(folder, NO_CARRIER)
  await (await sqlite.openWriteStore(join(folder, 'relay.db'))).close()
  expect(await mark(folder, '--mark', '--last', '1', '--forget-erasures')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--mark is for a store on PostgreSQL'),
  })
})

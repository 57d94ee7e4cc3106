import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { SERVER_STORES } from '../../../src/server/postgres/server-stores.ts'
import type { CheckLine } from '../../../src/upkeep/check/check.rules.ts'
import { diskProbe } from '../../../src/upkeep/check/local-probes.ts'
import { checkStandalone } from '../../../src/upkeep/check/standalone-check.ts'
import { compactStore } from '../../../src/upkeep/retention/compact.ts'
import { json, openCarrier } from '../../core/carrier/carrier-double.ts'
import { listen } from '../../support/network/listen.ts'
import { createAuthority } from '../../support/network/private-authority.ts'
import { loadConfig } from '../../support/relay/load-config.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { type Sections, startTestRelay, writeConfig } from '../../support/relay/relay.ts'
import { NOON } from '../../support/runner/constants.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { engines } from '../../support/store/engines.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { changeStoredRows } from '../../support/store/stored-rows.ts'
import { openStore } from '../../support/store/write-side.ts'

async function startCarrier({ aheadMs = 0, status = 200 } = {}) {
  let calls = 0
  const server = createServer((request, response) => {
    calls++
    request.resume()
    response.writeHead(status, { 'content-type': 'application/json', date: new Date(Date.now() + aheadMs).toUTCString() })
    response.end(request.method === 'POST' ? '{"token":"abc"}' : '{"statuses":[],"trackingIds":[]}')
  })
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${await listen(server)}`, calls: () => calls }
}

interface World {
  readonly sections?: Sections
  readonly folder?: string
  readonly carrierUrl?: string
  readonly isRunning?: boolean
}

async function check({ sections = {}, folder = temporaryFolder(), carrierUrl = 'http://127.0.0.1:9', isRunning = false }: World = {}) {
  const config = loadConfig(writeConfig(folder, carrierUrl, { limits: { freeSpaceMin: '1MB', connections: 100 }, ...sections }), {})
  const lines = await checkStandalone(config, { isRunning, server: SERVER_STORES })
  const of = (name: CheckLine['name'], subject: string | null = null) =>
    lines.find((line) => line.name === name && line.subject === subject)
  return { lines, of }
}

const red = (said: string) => expect.objectContaining({ state: 'failed', message: expect.stringContaining(said) })

test('a deployment that would work has no red line, and the check creates nothing', async () => {
  const [carrier, folder] = [await startCarrier(), temporaryFolder()]
  const { lines, of } = await check({
    folder: join(folder),
    carrierUrl: carrier.url,
    sections: { store: `sqlite:${folder}/data/relay.db` },
  })
  expect(lines.filter(({ state }) => state === 'failed')).toEqual([])
  expect(of('store')).toMatchObject({ state: 'ok', message: expect.stringContaining('does not exist yet') })
  expect(of('ports', 'public')).toMatchObject({ state: 'ok' })
  expect(carrier.calls()).toBe(2)
  expect(() => writeFileSync(join(folder, 'data'), '')).not.toThrow()
})

test('a store in which erased data may be left is a warning until it is compacted', async () => {
  const { path, writes } = await openStore(NOON)
  await writes.close()
  const look = async () => (await check({ sections: { store: `sqlite:${path}` } })).of('erasure')
  expect(await look()).toMatchObject({ state: 'ok' })
  for (const found of [2, 3]) {
    await changeStoredRows(path, `pragma user_version = ${found}`)
    expect(await look()).toMatchObject({ state: 'warning', message: expect.stringContaining('prune --compact') })
  }
  await compactStore(path)
  expect(await look()).toMatchObject({ state: 'ok' })
  // What was left beside the store matters once something was erased.
  const left = `${path}.before-restore-20260101T120000Z`
  writeFileSync(left, '')
  expect(await look()).toMatchObject({ state: 'ok' })
  writeFileSync(`${path}.tombstones`, '')
  expect(await look()).toMatchObject({ state: 'warning', message: expect.stringContaining(left) })
  renameSync(left, `${left}-wal`)
  expect(await look()).toMatchObject({ state: 'warning', message: expect.stringContaining(`${left}-wal`) })
})

const AT_REST = { atRestKeys: [Buffer.alloc(32, 3).toString('base64')] }

test.each(engines)('what ends a start after an erasure is red on $name: the at-rest key is another, or gone', async (engine) => {
  const { path, writes } = await openStore(NOON, engine)
  await writes.close()
  const sections = { store: engine.name === 'sqlite' ? `sqlite:${path}` : path, secrets: AT_REST }
  const look = async () => (await check({ sections })).of('keys', 'secrets.atRestKeys')
  expect(await look()).toMatchObject({ state: 'ok' })
  await changeStoredRows(path, "insert into tombstone (mark, parcel_id, erased_at_ms) values ('mark', 1, 1)")
  await changeStoredRows(path, "delete from setting where name = 'tombstone-key'")
  await changeStoredRows(
    path,
    "insert into setting (name, value) values ('tombstone-key', ?)",
    Buffer.from('sealed with a key that is lost'),
  )
  expect(await look()).toEqual(red('no at-rest key decrypts the key of tombstones'))
})

test('a key file that holds no key is red, and so is a file of tombstones that cannot be read', async () => {
  const { path, writes } = await openStore(NOON)
  await writes.close()
  const look = async () => (await check({ sections: { store: `sqlite:${path}` } })).lines.filter(({ state }) => state === 'failed')
  const before = (await look()).length
  writeFileSync(`${path}.key`, '', { mode: 0o600 })
  expect(await look()).toContainEqual(red(`${path}.key does not hold a key`))
  rmSync(`${path}.key`)
  expect(await look()).toHaveLength(before)
  writeFileSync(`${path}.tombstones`, '{"mark":\n', { mode: 0o600 })
  expect(await look()).toContainEqual(red(`line 1 of ${path}.tombstones cannot be read`))
})

test('a config on PostgreSQL without at-rest keys is red, although it can be loaded', async () => {
  const { of } = await check({ sections: { store: 'postgres://relay:secret@127.0.0.1:9/relay' } })
  expect(of('config')).toEqual(red('secrets.atRestKeys'))
  expect(of('store')).toEqual(red('postgres://relay@127.0.0.1:9/relay'))
})

test('a listener with a missing key file is red', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'cert.pem'), 'no certificate')
  const tls = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') }
  const listener = { host: '127.0.0.1', port: 0, tls }
  const { of } = await check({ folder, sections: { listen: { public: listener } } })
  expect(of('certificate', 'public')).toEqual(red('listen.public.tls.keyFile'))
})

testWith('openssl')('a key of another certificate, and an authority that cannot be read, are red', async () => {
  const folder = temporaryFolder()
  const authority = createAuthority(folder)
  authority.sign('one.test')
  authority.sign('two.test')
  const tls = { certFile: join(folder, 'one.test.pem'), keyFile: join(folder, 'two.test.key') }
  const { of } = await check({
    folder,
    carrierUrl: 'https://127.0.0.1:9',
    sections: {
      listen: { internal: { host: '127.0.0.1', port: 0, tls } },
      upstream: { baseUrl: 'https://127.0.0.1:9', username: 'a', password: 'b', caFile: join(folder, 'none.pem') },
    },
  })
  expect(of('certificate', 'internal')).toEqual(red('does not fit the certificate'))
  expect(of('certificate', 'upstream.caFile')).toEqual(red('none.pem cannot be read'))
  expect(of('credentials')).toEqual(red('none.pem cannot be read'))
})

test.each(engines)('without a relay, check asks about a parcel that was answered before: $name', async (engine) => {
  const { path, poll, writes } = await openStore(NOON, engine)
  await poll({ asked: 'AB123456789SE' })
  await writes.close()
  const { url, asked } = await openCarrier({ status: (_request, response) => json(response, 403, '{}') })
  const store = engine.name === 'sqlite' ? `sqlite:${path}` : path
  const { of } = await check({ carrierUrl: url, sections: { store } })
  expect(of('question')).toEqual(red('a parcel that it has answered before'))
  expect(asked.urls).toEqual([expect.stringContaining('/AB123456789SE/')])
})

test('what is to be checked is named by the one setting that says where tokens are issued', async () => {
  const { of } = await check()
  expect(of('credentials')).toEqual(red('Check upstream.baseUrl, and'))
  const upstream = { baseUrl: 'http://127.0.0.1:9', authUrl: 'http://127.0.0.1:9/token', username: 'a', password: 'b' }
  expect((await check({ sections: { upstream } })).of('credentials')).toEqual(red('Check upstream.authUrl, and'))
})

test('a store that is damaged, or whose folder is not writable, is red', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'relay.db'), 'this is no database, however long it may be')
  expect((await check({ folder })).of('store')).toEqual(red('is not a SQLite database'))
  const closed = join(temporaryFolder(), 'closed')
  mkdirSync(closed, { mode: 0o500 })
  onTestFinished(() => chmodSync(closed, 0o700))
  // Root may write everywhere.
  if (process.getuid?.() !== 0)
    expect((await check({ sections: { store: `sqlite:${closed}/relay.db` } })).of('store')).toEqual(red('cannot be opened'))
})

test('a store in use is not opened, and ports are not tried while a relay runs', async () => {
  const folder = temporaryFolder()
  const relay = await startTestRelay(folder, 'http://127.0.0.1:9')
  onTestFinished(() => relay.stop())
  const { of } = await check({ folder, isRunning: true })
  expect(of('store')).toMatchObject({ state: 'skipped', message: expect.stringContaining('in use by process') })
  expect(of('ports', 'internal')).toMatchObject({ state: 'skipped' })
  expect((await fetch(`${relay.internalUrl}/readyz`)).status).toBe(200)
})

test('a port in use while a relay holds the store may be the relay’s own, which is starting', async () => {
  const folder = temporaryFolder()
  const relay = await startTestRelay(folder, 'http://127.0.0.1:9')
  onTestFinished(() => relay.stop())
  const { port } = new URL(relay.publicUrl)
  const { of } = await check({ folder, sections: { listen: { public: { host: '127.0.0.1', port: Number(port) } } } })
  expect(of('ports', 'public')).toMatchObject({
    state: 'warning',
    message: expect.stringMatching(/probably by the relay itself: the store is in use by process \d+\. It may be starting/),
  })
})

test('endpoint keys that no at-rest key opens are red; files that others can read are a warning', async () => {
  const folder = temporaryFolder()
  const keyed = (byte: number) => ({ secrets: { atRestKeys: [Buffer.alloc(32, byte).toString('base64')] } })
  const relay = await startTestRelay(folder, 'http://127.0.0.1:9', keyed(1))
  const body = { name: 'shop', url: 'http://10.0.0.1/hook' }
  expect((await (await operatorOf(relay))('POST', '/relay/endpoints', body)).status).toBe(201)
  await relay.stop()
  expect((await check({ folder, sections: keyed(1) })).of('keys', 'secrets.atRestKeys')).toMatchObject({ state: 'ok' })
  chmodSync(join(folder, 'relay.db'), 0o644)
  const { of } = await check({ folder, sections: keyed(2) })
  expect(of('keys', 'secrets.atRestKeys')).toEqual(red('Restore secrets.atRestKeys'))
  expect(of('files')).toMatchObject({ state: 'warning', message: expect.stringContaining('chmod 600') })
})

test('a disk without room, a port in use, and too low a limit of open files are red', async () => {
  const server = createServer()
  onTestFinished(() => void server.close())
  const port = await listen(server)
  const { of } = await check({
    sections: {
      limits: { connections: 1_000_000 },
      listen: { public: { host: '127.0.0.1', port } },
    },
  })
  const config = loadConfig(writeConfig(temporaryFolder(), 'http://127.0.0.1:9'), {})
  expect(await diskProbe(config, async () => ({ freeBytes: 1_000_000, diskBytes: 2 ** 40 })).look()).toEqual(red('limits.freeSpaceMin'))
  expect(of('ports', 'public')).toEqual(red('is in use by another program'))
  expect(of('open_files')).toEqual(red('limits.connections of 1000000'))
})

test('a carrier that refuses login or question, is not reached, or has another time is red', async () => {
  expect((await check({ carrierUrl: (await startCarrier({ status: 401 })).url })).of('credentials')).toEqual(red('upstream.password'))
  expect((await check()).of('credentials')).toEqual(red('nothing listens there'))
  const late = await check({ carrierUrl: (await startCarrier({ aheadMs: 3_600_000 })).url })
  expect(late.of('credentials')).toMatchObject({ state: 'ok' })
  expect(late.of('clock')).toEqual(red('behind the carrier'))
  const refusing = await openCarrier({ status: (_request, response) => json(response, 403, '{}') })
  onTestFinished(refusing.close)
  expect((await check({ carrierUrl: refusing.url })).of('question')).toEqual(red('(403)'))
})

test('a database is read and not changed, whether or not a relay uses it', async () => {
  const atRest = { secrets: { atRestKeys: [Buffer.alloc(32, 1).toString('base64')] } }
  const { url } = await createDatabase('nothing')
  const { of } = await check({ sections: { store: url, ...atRest } })
  expect(of('store')).toMatchObject({ state: 'ok', message: expect.stringContaining('no relay uses it') })
  expect(of('disk')).toMatchObject({ state: 'skipped' })
  const relay = await startTestRelay(temporaryFolder(), 'http://127.0.0.1:9', { store: url, ...atRest })
  onTestFinished(() => relay.stop())
  const running = await check({ sections: { store: url, ...atRest }, isRunning: true })
  expect(running.of('store')).toMatchObject({ state: 'ok', message: expect.stringContaining('1 relay uses it') })
  expect(running.of('keys', 'secrets.atRestKeys')).toMatchObject({ state: 'ok' })
})

test('the address of operator.url is allowed because the config names it', async () => {
  const { url } = await startCarrier()
  const { of } = await check({ sections: { delivery: { allowNetworks: [] }, operator: { url: `${url}/hook`, sharedKey: 'k'.repeat(64) } } })
  expect(of('endpoint', 'operator')).toMatchObject({ state: 'ok' })
})

import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { sqlite } from '../../src/upkeep/sqlite-engine.ts'
import { closeOpened, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { endedJob } from '../support/relay/moves-of-relay.ts'
import { ADMIN, ask, logIn, push, startTestRelay, writeConfig } from '../support/relay/relay.ts'
import { inSeconds } from '../support/relay/relay-process.ts'
import { runCommand } from '../support/relay/run-command.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { listOf, memberOf } from '../support/runner/members.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { filesThatHold, tablesThatHold } from '../support/store/all-rows.ts'
import { contentsOf } from '../support/store/moving.ts'
import { changeStoredRows, storedNumber, storedRows } from '../support/store/stored-rows.ts'

afterAll(closeOpened)
const run = promisify(execFile)

async function restore(folder: string, ...args: readonly string[]) {
  const { args: relay, env } = shipped()
  const config = ['--config', join(folder, 'relay.yaml')]
  return await run(process.execPath, [...relay, 'restore', ...config, ...args], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

async function start(folder: string, sections: Record<string, unknown> = {}, carrierUrl = NO_CARRIER) {
  const relay = await startTestRelay(folder, carrierUrl, { backup: { directory: join(folder, 'backups') }, ...sections })
  onTestFinished(() => relay.stop())
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  const operator = await operatorOf(relay)
  const makeBackup = async (name: string) => {
    const { body } = await operator('POST', '/relay/backups', { name })
    expect(await endedJob(asker, `/relay/jobs/${String(body.id)}`)).toMatchObject({ state: 'done' })
  }
  const feed = async (after: number) => {
    const answer = await ask(relay.internalUrl, asker.token, `/relay/events?after=${after}&limit=500`)
    const body: unknown = await answer.json()
    return { status: answer.status, body, sequences: listOf(body, 'events').map((event) => Number(memberOf(event, 'sequence'))) }
  }
  return { ...relay, asker, operator, makeBackup, feed }
}

const store = (folder: string) => join(folder, 'relay.db')
const asidesIn = (folder: string) => readdirSync(folder).filter((name) => /^relay\.db\.before-restore-\w+$/.test(name))

/** Makes a stopped relay's folder with a backup `first`, and a push before and after it. */
async function backedUp(folder = temporaryFolder()) {
  const relay = await start(folder)
  expect((await push(relay.publicUrl, pushBody({ trackingIds: ['1001'] }))).status).toBe(200)
  await relay.makeBackup('first')
  expect((await push(relay.publicUrl, pushBody({ trackingIds: ['1002'] }))).status).toBe(200)
  await relay.stop()
  return { folder, backup: join(folder, 'backups', 'first.db') }
}

test('a restore brings back the state of the backup, and polls fill the gap', async () => {
  await using receiver = await startWebhookReceiver()
  const pushed: { readonly location: string; readonly eventTime: string }[] = []
  let isAsked = false
  const carrier = await openCarrier({
    status(_request, response) {
      const statuses = pushed.map(({ location, eventTime }) => ({ location, eventTimestamp: eventTime })).reverse()
      json(response, isAsked ? 200 : 404, isAsked ? answerBody({ statuses }).toString() : '{}')
    },
  })
  const folder = temporaryFolder()
  // Scheduled polls are so rare that every poll in this test comes from the restore.
  const cadence = { Created: '9h', Ingested: '9h', DeliveryStarted: '9h', default: '9h', whenPushIsHealthy: 'x1' }
  const sections = {
    ...inSeconds,
    poll: { ...inSeconds.poll, cadence },
    delivery: { schedule: ['100ms', '200ms'], allowNetworks: ['127.0.0.0/8'] },
  }
  const relay = await start(folder, sections, carrier.url)
  expect((await relay.operator('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })).status).toBe(201)
  const pushOne = async ({ publicUrl }: { readonly publicUrl: string }, location: string) => {
    const event = { location, eventTime: new Date().toISOString() }
    pushed.push(event)
    expect((await push(publicUrl, pushBody({ trackingIds: ['1001'], ...event }))).status).toBe(200)
  }
  await pushOne(relay, 'Before')
  await expect.poll(() => receiver.pushes.length, { timeout: 60_000 }).toBe(1)
  await relay.makeBackup('first')
  const backup = join(folder, 'backups', 'first.db')
  for (const location of ['After', 'Later']) await pushOne(relay, location)
  await expect.poll(() => receiver.pushes.length, { timeout: 60_000 }).toBe(3)
  await expect
    .poll(() => storedNumber(store(folder), 'select count(*) from delivery where state = 2'), { timeout: 60_000 })
    .toBeGreaterThanOrEqual(3)
  const seen = Math.max(...(await relay.feed(0)).sequences)
  const early = await restore(folder, backup, '--yes')
  expect([early.code, early.stderr]).toEqual([1, expect.stringContaining(`a relay is already running on`)])
  await relay.stop()

  const before = await contentsOf({ engine: sqlite, place: backup })
  const careful = await restore(folder, backup)
  expect([careful.code, careful.stderr]).toEqual([1, expect.stringContaining('is newer than the backup')])
  const done = await restore(folder, backup, '--yes')
  expect([done.code, done.stdout], done.stderr).toEqual([0, expect.stringContaining('2 deliveries were accepted after the backup')])
  const after = await contentsOf({ engine: sqlite, place: store(folder) })
  for (const table of ['identifier', 'content', 'sighting', 'answer', 'inbox', 'feed', 'delivery', 'attempt', 'endpoint'])
    expect([table, after.contents.get(table)]).toEqual([table, before.contents.get(table)])
  expect(asidesIn(folder)).toHaveLength(1)
  expect(await storedNumber(join(folder, asidesIn(folder)[0] ?? ''), 'select count(*) from inbox')).toBe(3)

  isAsked = true
  const again = await start(folder, sections, carrier.url)
  expect((await again.feed(seen)).body).toMatchObject({ status: 410, type: 'urn:parcel-relay:error:feed_rewound' })
  const lastOfBackup = before.numbers.sequence
  expect((await again.feed(seen)).body).toMatchObject({ lastSequence: lastOfBackup })
  expect((await again.feed(lastOfBackup)).status).toBe(200)
  const history = async () => {
    const answer = await ask(again.internalUrl, again.asker.token, '/v1/status/1001/all?language=en')
    return listOf(await answer.json(), 'statuses').map((entry) => memberOf(entry, 'location'))
  }
  await expect.poll(history, { timeout: 60_000 }).toEqual(['Later', 'After', 'Before'])
  await pushOne(again, 'New')
  await expect.poll(history, { timeout: 60_000 }).toEqual(['New', 'Later', 'After', 'Before'])
  const fresh = await again.feed(lastOfBackup)
  expect(fresh.sequences.length).toBeGreaterThan(0)
  expect(Math.min(...fresh.sequences)).toBeGreaterThan(1e9)
  // A page of the feed is now in memory, but a reader that saw later sequences than the backup is still refused.
  expect((await again.feed(seen)).status).toBe(410)
  await expect.poll(() => receiver.pushes.length, { timeout: 60_000 }).toBeGreaterThan(3)
  const ids = receiver.pushes.map(({ headers, body: sent }) => [headers['webhook-id'], sent] as const)
  const byId = Map.groupBy(ids, ([id]) => id)
  for (const [id, sent] of byId) expect([id, new Set(sent.map(([, text]) => String(text))).size]).toEqual([id, 1])
  const told = async () => (await again.operator('GET', '/relay/operator-events?event=store_restored')).body
  await expect
    .poll(told, { timeout: 60_000 })
    .toMatchObject({ events: [{ backup: 'first', lastSequence: lastOfBackup, nextSequence: 1e9, delivered: 2 }] })
  expect((await again.operator('GET', '/relay/audit')).body).toMatchObject({
    actions: expect.arrayContaining([
      expect.objectContaining({ action: 'store.restored', by: expect.objectContaining({ kind: 'command' }) }),
    ]),
  })
  expect((await again.operator('GET', '/relay/upstream')).body).toMatchObject({ pushes: { missed: { count: 0 } } })
  const metrics = await (await fetch(`${again.internalUrl}/metrics`)).text()
  expect(metrics).toMatch(/^relay_restores 1$/m)
  expect(metrics).toMatch(/^relay_restore_deliveries_repeatable 2$/m)
})

test('every counter continues at the next multiple of 10^9 after each restore', async () => {
  const { folder, backup } = await backedUp()
  for (const [nth, next] of [1e9, 2e9].entries()) {
    expect(await restore(folder, backup, '--yes'), `restore ${nth}`).toMatchObject({ code: 0 })
    const relay = await start(folder)
    expect((await push(relay.publicUrl, pushBody({ trackingIds: ['2001'] }))).status).toBe(200)
    const { body } = await relay.operator('POST', '/relay/endpoints', { name: 'shop', url: 'http://10.0.0.1/', enabled: false })
    expect((await push(relay.publicUrl, pushBody({ trackingIds: ['2002'], location: 'Lund' }))).status).toBe(200)
    await relay.makeBackup(`then-${nth}`)
    await relay.stop()
    const one = async (query: string) => await storedNumber(store(folder), query)
    expect(Number(body.id)).toBeGreaterThan(next)
    for (const table of ['parcel', 'inbox', 'endpoint', 'delivery', 'job'])
      expect([table, await one(`select max(id) from ${table}`)]).toEqual([
        table,
        expect.toSatisfy((id: number) => id > next && id < next + 100),
      ])
    expect(await one('select max(sequence) from feed')).toBeGreaterThan(next)
  }
})

test('a token that was ended after the backup is not valid after its restore', async () => {
  const folder = temporaryFolder()
  const relay = await start(folder)
  const token = await logIn(relay.internalUrl, ADMIN)
  await relay.makeBackup('first')
  expect((await relay.operator('POST', '/relay/secrets/rotate-tokens', { at: 'now' })).status).toBe(200)
  expect((await ask(relay.internalUrl, token, '/relay/events?after=0')).status).toBe(401)
  await relay.stop()
  expect(await restore(folder, join(folder, 'backups', 'first.db'), '--yes')).toMatchObject({ code: 0 })
  const again = await start(folder)
  expect((await ask(again.internalUrl, token, '/relay/events?after=0')).status).toBe(401)
})

test('a restore without the old store needs --last, and later numbers are greater', async () => {
  const { folder, backup } = await backedUp()
  rmSync(store(folder))
  const unknown = await restore(folder, backup)
  expect([unknown.code, unknown.stderr]).toEqual([
    1,
    expect.stringMatching(/--last N[\s\S]*--tombstones FILE[\s\S]*--forget-erasures\. Nothing was changed$/m),
  ])
  expect(await restore(folder, backup, '--last', 'many')).toMatchObject({ code: 2 })
  const erasures = await restore(folder, backup, '--last', '3000000007')
  expect([erasures.code, erasures.stderr]).toEqual([1, expect.stringContaining('--forget-erasures')])
  const done = await restore(folder, backup, '--last', '3000000007', '--forget-erasures')
  expect([done.code, done.stdout], done.stderr).toEqual([0, expect.stringContaining('Sequences go on after 4000000000')])
  expect(await storedNumber(store(folder), "select cast(cast(value as text) as integer) from setting where name = 'sequence'")).toBe(4e9)
  const relay = await start(folder)
  expect((await push(relay.publicUrl, pushBody({ trackingIds: ['1003'] }))).status).toBe(200)
})

/** Where the tombstones are before the restore. `move` puts them there, and returns the options that the restore then needs. */
const TOMBSTONES: readonly (readonly [where: string, move: (folder: string) => readonly string[]])[] = [
  ['beside the store', () => []],
  [
    'only in the store that is replaced',
    (folder) => {
      rmSync(`${store(folder)}.tombstones`)
      return []
    },
  ],
  [
    'at another address, because the store is gone',
    (folder) => {
      renameSync(`${store(folder)}.tombstones`, join(folder, 'kept'))
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${store(folder)}${suffix}`, { force: true })
      return ['--last', '100', '--tombstones', join(folder, 'kept')]
    },
  ],
]

test.each(TOMBSTONES)('the start after a restore repeats the erasures made since the backup: tombstones %s', async (_where, move) => {
  const folder = temporaryFolder()
  const relay = await start(folder)
  for (const id of ['GONE0001', 'KEPT0001']) await push(relay.publicUrl, pushBody({ trackingIds: [id], texts: { en: `of ${id}` } }))
  await push(relay.publicUrl, '{"trackingIds":["GONE0001"]}')
  // This number never gets a parcel.
  await push(relay.publicUrl, '{"order":{"parcel":"HELD 00 01"}}')
  await relay.makeBackup('first')
  expect((await relay.operator('DELETE', '/relay/parcels/HELD0001')).body).toMatchObject({ removed: { parcels: 0, pushes: 1 } })
  expect((await relay.operator('DELETE', '/relay/parcels/GONE0001')).body).toMatchObject({ backups: ['first'] })
  await vi.waitFor(async () => expect((await relay.operator('DELETE', '/relay/parcels/GONE0001')).body).toMatchObject({ storage: 'clean' }))
  await relay.stop()
  const done = await restore(folder, join(folder, 'backups', 'first.db'), '--yes', ...move(folder))
  expect([done.code, done.stdout], done.stderr).toEqual([0, expect.stringContaining('2 identifiers were erased since the backup')])
  const words = ['GONE0001', 'HELD 00 01', 'HELD0001']
  expect(await tablesThatHold(store(folder), words)).toEqual(expect.arrayContaining(['inbox: GONE0001', 'inbox: HELD 00 01']))

  const again = await start(folder)
  expect(await tablesThatHold(store(folder), words)).toEqual([])
  expect(filesThatHold(store(folder), words)).toEqual([])
  expect(await tablesThatHold(store(folder), ['KEPT0001'])).not.toEqual([])
  for (const id of ['GONE0001', 'HELD0001']) expect((await push(again.publicUrl, pushBody({ trackingIds: [id] }))).status).toBe(200)
  expect(await tablesThatHold(store(folder), words)).toEqual([])
  const { body: trail } = await again.operator('GET', '/relay/audit?action=parcels.erased')
  expect(trail).toMatchObject({
    actions: [{ by: { kind: 'relay' }, detail: { afterRestore: true, identifiers: 2, marks: [expect.any(String), expect.any(String)] } }],
  })
  await again.stop()
  // The next start has no erasure left to repeat.
  const third = await start(folder)
  const asides = asidesIn(folder).map((name) => join(folder, name))
  expect((await third.operator('DELETE', '/relay/parcels/KEPT0001?dryRun=true')).body).toMatchObject({ stores: asides })
  expect((await third.operator('GET', '/relay/parcels/KEPT0001')).status).toBe(200)
})

test('a restore that was interrupted between its renames is finished by the next restore', async () => {
  const { folder, backup } = await backedUp()
  expect(await restore(folder, backup, '--yes')).toMatchObject({ code: 0 })
  const [aside = ''] = asidesIn(folder)
  const path = store(folder)
  // Make the state after a kill between the renames of the old store and of the new store.
  renameSync(path, `${path}.restored`)
  writeFileSync(`${path}.restoring`, `${aside.slice('relay.db.'.length)}\n`)
  await expect(sqlite.openWriteStore(path)).rejects.toThrow('run the same "parcel-relay restore" again')
  const finished = await restore(folder, backup)
  expect([finished.code, finished.stdout]).toEqual([0, expect.stringContaining('An earlier restore that was interrupted is now finished')])
  expect([existsSync(`${path}.restoring`), existsSync(`${path}.restored`), asidesIn(folder)]).toEqual([false, false, [aside]])
  // Make the state after a kill before the first rename.
  renameSync(path, `${path}.restored`)
  copyFileSync(join(folder, aside), path)
  rmSync(join(folder, aside))
  writeFileSync(`${path}.restoring`, 'before-restore-20990101T000000Z\n')
  expect(await restore(folder, backup)).toMatchObject({ code: 0 })
  expect(await storedNumber(path, 'select count(*) from inbox')).toBe(1)
  expect(await storedNumber(`${path}.before-restore-20990101T000000Z`, 'select count(*) from inbox')).toBe(2)
  await (await sqlite.openWriteStore(path)).close()
})

test('a file that is no backup, or a damaged one, is refused and changes nothing', async () => {
  const { folder, backup } = await backedUp()
  const before = readFileSync(store(folder))
  const refused = async (file: string, why: string) => {
    const { code, stderr } = await restore(folder, file, '--yes')
    expect([code, stderr]).toEqual([1, expect.stringContaining(why)])
  }
  await refused(join(folder, 'nowhere.db'), 'does not exist')
  await refused(folder, 'is not a file')
  await refused(store(folder), 'is no backup made by')
  const text = join(folder, 'text.db')
  writeFileSync(text, 'no database at all')
  await refused(text, 'not a database')
  const short = join(folder, 'short.db')
  copyFileSync(backup, short)
  await changeStoredRows(short, 'delete from inbox')
  await refused(short, 'its bytes have changed')
  expect(await runCommand(['backup', '--verify', backup])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('no byte has changed'),
  })
  expect(await runCommand(['backup', '--verify', short])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('its bytes have changed'),
  })
  expect(readFileSync(store(folder)).equals(before)).toBe(true)
  expect(asidesIn(folder)).toEqual([])
  expect(readdirSync(folder).filter((name) => /restor/.test(name))).toEqual([])
})

test('a restore first checks the keys, and names endpoints that now have another key', async () => {
  const folder = temporaryFolder()
  const relay = await start(folder)
  const shop = await relay.operator('POST', '/relay/endpoints', { name: 'shop', url: 'http://10.0.0.1/', enabled: false })
  await relay.makeBackup('first')
  await relay.stop()
  const backup = join(folder, 'backups', 'first.db')
  const key = join(folder, 'backups', 'first.key')
  const kept = readFileSync(key)
  const other = `${Buffer.alloc(32, 9).toString('base64')}\n`
  writeFileSync(key, other)
  const lost = await restore(folder, backup, '--yes')
  expect([lost.code, lost.stderr]).toEqual([1, expect.stringContaining('the keys of these endpoints in the backup cannot be opened: shop')])
  writeFileSync(key, kept)
  // The store now has another key file than the backup.
  writeFileSync(`${store(folder)}.key`, other)
  const done = await restore(folder, backup, '--yes')
  expect([done.code, done.stderr]).toEqual([0, expect.any(String)])
  expect(readFileSync(`${store(folder)}.key`)).toEqual(kept)
  expect(readdirSync(folder).filter((name) => /before-restore-\w+\.key$/.test(name))).toHaveLength(1)
  writeFileSync(`${store(folder)}.key`, kept)

  // Replace the endpoint's key after the backup. Both keys can be opened.
  const again = await start(folder)
  const { body } = await again.operator('GET', '/relay/endpoints')
  expect(body).toMatchObject({ endpoints: [{ name: 'shop' }] })
  expect((await again.operator('POST', `/relay/endpoints/${String(shop.body.id)}/rotate`, {})).status).toBeLessThan(300)
  expect((await again.operator('POST', `/relay/endpoints/${String(shop.body.id)}/rotate`, { at: 'now' })).status).toBeLessThan(300)
  await again.stop()
  const named = await restore(folder, backup, '--yes')
  expect([named.code, named.stdout]).toEqual([0, expect.stringContaining('have another key in the backup than the one that signs now')])
})

test('a backup without its at-rest key is restored without keys if an operator confirms it', async () => {
  const folder = temporaryFolder()
  const relay = await start(folder)
  const shop = await relay.operator('POST', '/relay/endpoints', { name: 'shop', url: 'http://10.0.0.1/', enabled: false })
  for (const id of ['GONE0001', 'KEPT0001']) await push(relay.publicUrl, pushBody({ trackingIds: [id] }))
  expect((await relay.operator('DELETE', '/relay/parcels/GONE0001')).status).toBe(200)
  await relay.makeBackup('first')
  await relay.stop()
  const backup = join(folder, 'backups', 'first.db')
  for (const key of [`${store(folder)}.key`, join(folder, 'backups', 'first.key')]) rmSync(key)
  const refused = async (...args: readonly string[]) => {
    const { code, stderr } = await restore(folder, backup, '--yes', ...args)
    expect(code).toBe(1)
    return stderr
  }
  expect(await refused()).toContain('add --without-keys')
  expect(await refused('--without-keys')).toContain('--without-keys --forget-erasures')
  expect(asidesIn(folder)).toEqual([])
  // On a new machine, the restore asks for all missing options at once.
  const elsewhere = temporaryFolder()
  writeConfig(elsewhere, NO_CARRIER)
  const lacking = await restore(elsewhere, backup)
  for (const option of ['--last N', '--tombstones FILE', '--forget-erasures', '--without-keys'])
    expect([lacking.code, lacking.stderr]).toEqual([1, expect.stringContaining(option)])
  const done = await restore(folder, backup, '--yes', '--without-keys', '--forget-erasures')
  expect([done.code, done.stdout], done.stderr).toEqual([0, expect.stringContaining('because theirs cannot be opened: shop')])
  expect(await storedNumber(store(folder), 'select count(*) from tombstone')).toBe(0)
  expect(existsSync(`${store(folder)}.tombstones`)).toBe(false)

  const again = await start(folder, { secrets: { atRestKeys: [Buffer.alloc(32, 5).toString('base64')] } })
  expect((await again.operator('GET', '/relay/parcels/KEPT0001')).status).toBe(200)
  expect((await again.operator('POST', `/relay/endpoints/${String(shop.body.id)}/rotate`, {})).status).toBeLessThan(300)
  expect((await again.operator('DELETE', '/relay/parcels/KEPT0001')).status).toBe(200)
})

test('a restore takes the day’s call count from the old store and drops expected pushes', async () => {
  const { folder, backup } = await backedUp()
  const memory = {
    atMs: Date.now(),
    days: [{ day: Math.floor(Date.now() / 86_400_000), calls: 123 }],
    pausedUntilMs: null,
    tokenPausedUntilMs: null,
    refusal: null,
  }
  const keep = "insert into setting (name, value) values ('carrier-memory', ?) on conflict (name) do update set value = excluded.value"
  await changeStoredRows(store(folder), keep, Buffer.from(JSON.stringify(memory)))
  expect(await restore(folder, backup, '--yes')).toMatchObject({ code: 0 })
  const [kept] = await storedRows<{ value: Uint8Array }>(store(folder), "select value from setting where name = 'carrier-memory'")
  expect(JSON.parse(Buffer.from(kept?.value ?? '').toString())).toEqual(memory)
  expect(await storedNumber(store(folder), 'select count(*) from expected_push')).toBe(0)
  expect(await storedNumber(store(folder), `select count(*) from parcel where next_poll_at_ms > ${Date.now()}`)).toBe(0)
})

test('restore says what to do for a store on PostgreSQL', async () => {
  const folder = temporaryFolder()
  const secrets = { atRestKeys: [Buffer.alloc(32, 1).toString('base64')] }
  writeConfig(folder, NO_CARRIER, { store: 'postgres://relay@127.0.0.1:9/relay', secrets })
  const { code, stderr } = await restore(folder, 'first.db')
  expect([code, stderr]).toEqual([1, expect.stringContaining('restore --mark')])
})

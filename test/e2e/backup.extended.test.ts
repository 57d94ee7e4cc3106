import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { createVisitor } from '../support/portal/portal-visitor.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { endedJob } from '../support/relay/moves-of-relay.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, logIn, startTestRelay, writeConfig } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'
import { damageOf, storedBodies, storedRows } from '../support/store/stored-rows.ts'

async function startRelay(sections: Record<string, unknown>, folder = temporaryFolder()) {
  const relay = await startTestRelay(folder, NO_CARRIER, sections)
  onTestFinished(() => relay.stop())
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  const operator = await operatorOf(relay)
  const makeBackup = async (name: string) => {
    const started = await operator('POST', '/relay/backups', { name })
    expect(started).toMatchObject({ status: 202, body: { kind: 'backup', task: { name } } })
    return await endedJob(asker, `/relay/jobs/${String(started.body.id)}`)
  }
  const reload = (next: Record<string, unknown>) => relay.reload(loadConfig(writeConfig(folder, NO_CARRIER, next)))
  const metrics = async () => await (await fetch(`${relay.internalUrl}/metrics`)).text()
  return { ...relay, folder, asker, operator, makeBackup, reload, metrics }
}

async function manifestOf(file: string): Promise<unknown> {
  const [row] = await storedRows<{ json: string }>(file, 'select json from backup_manifest')
  return JSON.parse(row?.json ?? 'null')
}

test('a backup made under load holds everything that was acknowledged before it began', async () => {
  const folder = temporaryFolder()
  const directory = join(folder, 'backups')
  const { publicUrl, operator, makeBackup, metrics } = await startRelay({ backup: { directory } }, folder)
  expect(await metrics()).not.toMatch(/^relay_backup_age_seconds /m)
  const load = startLoad(publicUrl, 4, distinctPushes(20).next)
  await load.untilAnswered(200)
  const before = load.answered()
  expect(await makeBackup('first')).toMatchObject({ state: 'done', failure: null })
  const answers = await load.stop()
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect(readdirSync(directory)).toEqual(['first.db'])
  expect(existsSync(join(folder, 'relay.db.backup'))).toBe(false)
  expect(statSync(join(directory, 'first.db')).mode & 0o777).toBe(0o600)
  const file = join(directory, 'first.db')
  expect(await damageOf(file)).toBeNull()
  const inbox = (await storedBodies(file)).size
  expect(inbox).toBeGreaterThanOrEqual(before)
  expect(await manifestOf(file)).toMatchObject({ name: 'first', keys: [], rows: { inbox } })
  const listed = await operator('GET', '/relay/backups')
  expect(listed.body).toMatchObject({ directory, failing: null, last: { name: 'first' }, backups: [{ name: 'first', hasKey: false }] })
  expect(await metrics()).toMatch(/^relay_backup_bytes [1-9]/m)
  const again = await operator('POST', '/relay/backups', { name: 'first' })
  expect(again).toMatchObject({ status: 409, body: { type: 'urn:parcel-relay:error:not_backed_up' } })
  expect((await operator('GET', '/relay/audit')).body).toMatchObject({
    actions: [{ action: 'store.backup_started', target: { id: 'first' } }],
  })
})

test('a backup includes an at-rest key that the relay made, but none from the config', async () => {
  const folder = temporaryFolder()
  const directory = join(folder, 'backups')
  const { operator, makeBackup } = await startRelay({ backup: { directory } }, folder)
  expect((await operator('POST', '/relay/endpoints', { name: 'shop', url: 'http://10.0.0.1/', enabled: false })).status).toBe(201)
  await makeBackup('own')
  expect(readdirSync(directory).toSorted()).toEqual(['own.db', 'own.key'])
  expect(statSync(join(directory, 'own.key')).mode & 0o777).toBe(0o600)
  expect((await operator('GET', '/relay/backups')).body).toMatchObject({ backups: [{ name: 'own', hasKey: true }] })

  const given = temporaryFolder()
  const secrets = { atRestKeys: [Buffer.alloc(32, 7).toString('base64')] }
  const other = await startRelay({ backup: { directory: given }, secrets })
  await other.makeBackup('given')
  expect(readdirSync(given)).toEqual(['given.db'])
  expect(await manifestOf(join(given, 'given.db'))).toMatchObject({ keys: [expect.stringMatching(/^[\w-]{11}$/)] })
})

test('a reload starts scheduled backups, which delete only older scheduled backups', async () => {
  const folder = temporaryFolder()
  const directory = join(folder, 'backups')
  const relay = await startRelay({ backup: { directory } }, folder)
  await relay.makeBackup('ordered')
  const foreign = ['scheduled-20200101T000000Z.db', 'scheduled-20200102T000000Z.db', 'notes.txt']
  for (const name of foreign) writeFileSync(join(directory, name), 'not ours')
  await relay.reload({ backup: { directory, cron: '* * * * * *', keep: 1 } })
  const scheduled = () => readdirSync(directory).filter((name) => name.startsWith('scheduled-') && !foreign.includes(name))
  await expect.poll(scheduled, { timeout: 60_000 }).toHaveLength(1)
  const [first] = scheduled()
  await expect.poll(() => scheduled().every((name) => name !== first), { timeout: 60_000 }).toBe(true)
  await relay.reload({ backup: { directory } })
  await expect.poll(() => readdirSync(directory).filter((name) => name.endsWith('.part')), { timeout: 60_000 }).toEqual([])
  expect(readdirSync(directory)).toEqual(expect.arrayContaining([...foreign, 'ordered.db']))
  expect((await relay.operator('GET', '/relay/jobs')).body).toMatchObject({
    jobs: expect.arrayContaining([expect.objectContaining({ by: 'schedule' })]),
  })
})

test('a failing backup folder is reported, shown and counted until a backup succeeds', async () => {
  const folder = temporaryFolder()
  const directory = join(folder, 'backups')
  // The parent folder is missing, as if a disk were not mounted.
  const relay = await startRelay({ backup: { directory: join(folder, 'unmounted', 'backups') } }, folder)
  expect(await relay.makeBackup('first')).toMatchObject({
    state: 'failed',
    failure: expect.stringMatching(/unmounted.*: there is no such file or folder$/),
  })
  expect(await relay.makeBackup('second')).toMatchObject({ state: 'failed' })
  const told = async () => (await relay.operator('GET', '/relay/operator-events')).body
  expect(await told()).toMatchObject({ events: [{ event: 'backup_failed', backup: 'first' }], next: null })
  expect(await relay.metrics()).toMatch(/^relay_backup_failures_total 2$/m)
  const visitor = createVisitor(relay.internalUrl)
  await visitor.logIn()
  expect((await visitor.get('/')).text).toContain('No backup can be made')
  expect((await visitor.get('/backups')).text).toContain('No backup could be made since')
  expect(existsSync(join(folder, 'relay.db.backup'))).toBe(false)

  await relay.reload({ backup: { directory } })
  expect(await relay.makeBackup('third')).toMatchObject({ state: 'done' })
  await expect.poll(told).toMatchObject({ events: expect.arrayContaining([expect.objectContaining({ event: 'backup_recovered' })]) })
  expect((await visitor.get('/')).text).not.toContain('No backup can be made')
  expect((await visitor.get('/backups')).text).toContain('third')
})

test('a backup that cannot be written leaves no partial file', async () => {
  const folder = temporaryFolder()
  const directory = join(folder, 'backups')
  const relay = await startRelay({ backup: { directory } }, folder)
  writeFileSync(directory, 'a file')
  expect((await relay.operator('POST', '/relay/backups', { name: 'first' })).body).toMatchObject({
    detail: expect.stringContaining('a part of its path is not a folder'),
  })
  rmSync(directory)
  const ids = await storedRows<{ id: string }>(join(folder, 'relay.db'), "select hex(value) as id from setting where name = 'relay-id'")
  const part = `first.db.${ids[0]?.id.slice(0, 8).toLowerCase()}.part`
  mkdirSync(join(directory, part, 'in-the-way'), { recursive: true })
  expect(await relay.makeBackup('first')).toMatchObject({ state: 'failed' })
  expect(readdirSync(directory)).toEqual([part])
  chmodSync(directory, 0o700)
})

test('an order in the portal makes a backup, and a wrong name is refused next to the form', async () => {
  const folder = temporaryFolder()
  const relay = await startRelay({ backup: { directory: join(folder, 'backups') } }, folder)
  const visitor = createVisitor(relay.internalUrl)
  await visitor.logIn()
  const wrong = await visitor.post('/backups', { name: '../up' })
  expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining('name must be 1 to 80 letters')])
  expect((await visitor.post('/backups', { name: 'by-hand' })).headers.get('location')).toBe('/jobs')
  await expect.poll(async () => (await visitor.get('/backups')).text, { timeout: 60_000 }).toContain('<code>by-hand</code>')
})

test('a relay on PostgreSQL makes no backups, and says what to use instead', async () => {
  const { url } = await createDatabase('nothing')
  const relay = await startRelay({ ...(await onPostgres(url)), backup: { directory: temporaryFolder(), cron: '* * * * *' } })
  const refusal = { status: 409, body: { detail: expect.stringContaining('pg_dump') } }
  expect(await relay.operator('POST', '/relay/backups', { name: 'first' })).toMatchObject(refusal)
  expect(await relay.operator('GET', '/relay/backups')).toMatchObject(refusal)
  const visitor = createVisitor(relay.internalUrl)
  await visitor.logIn()
  expect((await visitor.get('/backups')).text).toContain('pg_dump')
  expect(relay.lines.filter(({ message }) => message.includes('backup.cron has no effect'))).toHaveLength(1)
})

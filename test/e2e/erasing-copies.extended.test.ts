import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { pushBody } from '../support/history/builders.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { commandsOf } from '../support/relay/run-command.ts'
import { DAY_MS, NO_CARRIER, NOON } from '../support/runner/constants.ts'
import { movableClock } from '../support/runner/movable-clock.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { changeStoredRows, storedNumber } from '../support/store/stored-rows.ts'

const PATIENCE = { timeout: 30_000, interval: 200 }

const listed = z.object({ backups: z.array(z.string()), storage: z.literal('clean').or(z.literal('pending')) })

async function start() {
  const directory = join(temporaryFolder(), 'backups')
  const relay = await relayOfTest({ backup: { directory } })
  const operate = await operatorOf(relay)
  const pushOf = (id: string) => push(relay.publicUrl, pushBody({ trackingIds: [id] }))
  for (const id of ['GONE0001', 'GONE0002']) await pushOf(id)
  const back = async (name: string) => {
    await operate('POST', '/relay/backups', { name })
    await expect.poll(async () => (await operate('GET', '/relay/backups')).body).toMatchObject({ last: { name } })
  }
  const erase = async (id: string) => listed.parse((await operate('DELETE', `/relay/parcels/${id}`)).body)
  return { ...relay, operate, directory, pushOf, back, erase }
}

test('an erasure names a backup that is being made, and then the backup', async () => {
  const { operate, pushOf } = await start()
  expect((await operate('POST', '/relay/backups', { name: 'under-way' })).status).toBe(202)
  expect((await operate('DELETE', '/relay/parcels/GONE0001')).body).toMatchObject({ backups: ['under-way'], backupsUnreadable: null })
  await expect.poll(async () => (await operate('GET', '/relay/jobs')).body).toMatchObject({ jobs: [{ state: 'done' }] })
  expect((await operate('DELETE', '/relay/parcels/GONE0002')).body).toMatchObject({ backups: ['under-way'], backupsUnreadable: null })
  await pushOf('LAST0001')
  const answer = await operate('DELETE', '/relay/parcels/LAST0001')
  expect(answer.body, 'the backup is older than the parcel').toMatchObject({ backups: [], backupsUnreadable: null })
})

test('a backup that was begun after an erasure had ended does not hold the parcel', async () => {
  const { operate, back, erase } = await start()
  await back('before')
  expect((await erase('GONE0001')).backups).toEqual(['before'])
  await back('after')
  expect((await erase('GONE0001')).backups).toEqual(['before'])
  expect((await operate('DELETE', '/relay/parcels/GONE0001?dryRun=true')).body).toMatchObject({ backups: ['before'] })
  expect((await erase('GONE0002')).backups.toSorted()).toEqual(['after', 'before'])
})

test('a backup is named for what it holds, although the store has removed that by age', async () => {
  const folder = temporaryFolder()
  const clock = movableClock(folder)
  const config = writeConfig(folder, NO_CARRIER, { backup: { directory: join(folder, 'backups') } })
  await using relay = await runRelay(config, clock.env)
  // Tokens expire when the clock is moved.
  const operate = async (method: string, path: string, body?: object) => await (await operatorOf(relay))(method, path, body)
  const pushOf = (id: string) => push(relay.publicUrl, pushBody({ trackingIds: [id], eventTime: new Date(clock.now()).toISOString() }))
  const back = async (name: string) => {
    await operate('POST', '/relay/backups', { name })
    await expect.poll(async () => (await operate('GET', '/relay/backups')).body, PATIENCE).toMatchObject({ last: { name } })
  }
  const backupsOf = async (id: string) => listed.parse((await operate('DELETE', `/relay/parcels/${id}`)).body).backups.toSorted()
  for (const id of ['GONE0001', 'GONE0002']) await pushOf(id)
  await operate('DELETE', '/relay/parcels/GONE0001/watch')
  await back('first-parcel')
  expect(await backupsOf('GONE0002')).toEqual(['first-parcel'])
  await push(relay.publicUrl, JSON.stringify({ trackingIds: ['GONE0002'] }))
  await back('with-a-record')
  expect((await operate('POST', '/relay/inbox/dismiss')).status).toBe(200)

  const tidied = async (query: string) => {
    await operate('POST', '/relay/retention')
    return await storedNumber(join(folder, 'relay.db'), query)
  }
  // A pass notes which parcels there are, so that a later one knows their age.
  await expect.poll(() => tidied('select max(parcel_id) from age_mark'), PATIENCE).toBeGreaterThan(0)
  clock.pass(500 * DAY_MS)
  await expect.poll(() => tidied("select count(*) from identifier where value = 'GONE0001'"), PATIENCE).toBe(0)
  await expect.poll(() => tidied('select count(*) from inbox where parcel_id = 0'), PATIENCE).toBe(0)
  await pushOf('GONE0001')
  await pushOf('LAST0001')
  expect(await backupsOf('LAST0001'), 'what was not recorded names another parcel').toEqual([])
  expect(await backupsOf('GONE0001')).toEqual(['first-parcel', 'with-a-record'])
  expect(await backupsOf('GONE0002')).toEqual(['first-parcel', 'with-a-record'])
})

test('a record that names an erased parcel, or that nobody can read, makes backups suspect again', async () => {
  const { back, erase, publicUrl } = await start()
  await erase('GONE0001')
  await push(publicUrl, JSON.stringify({ trackingIds: ['GONE0001'] }))
  await back('with-a-record')
  await push(publicUrl, JSON.stringify({ trackingIds: ['GONE0002'] }))
  expect((await erase('GONE0001')).backups).toEqual(['with-a-record'])
  expect((await erase('GONE0001')).backups).toEqual(['with-a-record'])
  await back('without')
  expect((await erase('GONE0001')).backups).toEqual(['with-a-record'])
  await push(publicUrl, JSON.stringify({ trackingIds: ['XGONE00017'] }))
  await erase('GONE0001')
  await back('unreadable')
  expect((await erase('GONE0001')).backups.toSorted()).toEqual(['unreadable', 'with-a-record', 'without'])
})

test('an erasure says that backups are named because they are older than the last restore', async () => {
  const { operate, back, erase, databasePath, internalUrl } = await start()
  await erase('GONE0001')
  await back('clean')
  expect((await operate('DELETE', '/relay/parcels/GONE0001')).body).toMatchObject({ backups: [], restoredAt: null })
  const restored = { atMs: NOON, backup: 'other', madeAtMs: NOON, from: 1, to: 2, delivered: null, isTold: true }
  const record = Buffer.from(JSON.stringify([restored]))
  await changeStoredRows(databasePath, "insert into setting (name, value) values ('restores', ?)", record)
  const at = new Date(NOON).toISOString()
  expect((await operate('DELETE', '/relay/parcels/GONE0001')).body).toMatchObject({ backups: ['clean'], restoredAt: at })
  const said = await commandsOf({ internalUrl })('forget', 'GONE0001', '--yes')
  expect(said.stdout).toContain(
    `backups that may hold it (with all that are older than the last restore, at ${at}, whatever they hold): clean`,
  )
  const visitor = await loggedInAt(internalUrl)
  const erased = await visitor.post('/parcels/GONE0002/erase', { confirm: 'GONE0002' })
  expect(erased.text).toContain('All backups are named that are older than the last restore')
})

test('an erasure names copies that a kill has left, and a folder of backups that cannot be read', async () => {
  const { operate, directory, databasePath, internalUrl } = await start()
  const copies = ['.compact', '.restored'].map((ending) => `${databasePath}${ending}`)
  for (const copy of copies) writeFileSync(copy, 'GONE0001')
  writeFileSync(directory, 'no folder')
  expect((await operate('DELETE', '/relay/parcels/GONE0001')).body).toMatchObject({
    backups: [],
    backupsUnreadable: expect.stringContaining('is not a folder'),
    stores: copies,
  })
  const visitor = await loggedInAt(internalUrl)
  const erased = await visitor.post('/parcels/GONE0002/erase', { confirm: 'GONE0002' })
  for (const text of ['The folder of backups cannot be read', 'is not a folder', 'Records that may name it and stay', ...copies])
    expect(erased.text).toContain(text)
  rmSync(directory)
  mkdirSync(directory)
  for (const copy of copies) rmSync(copy)
  expect((await operate('DELETE', '/relay/parcels/GONE0001')).body).toMatchObject({ backups: [], backupsUnreadable: null, stores: [] })
})

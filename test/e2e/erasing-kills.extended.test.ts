import { spawnSync } from 'node:child_process'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeBackup } from '../../src/upkeep/backups/make-backup.ts'
import { filesWith, searchForNames, tablesWith } from '../support/erasure/traces.ts'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, startTestRelay, writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { killedAtCommit } from '../support/runner/killed-at-commit.ts'
import { LONG } from '../support/runner/long-form.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { changeStoredRows, storedNumber } from '../support/store/stored-rows.ts'

const SECTIONS = { poll: { cron: '0 0 1 1 *' } }
const search = searchForNames(['GONE0001', 'GONE0002'])

/** Makes a stopped relay's folder with a parcel that has two identifiers, held pushes that name the second, and a parcel to keep. */
async function filled(): Promise<string> {
  const folder = temporaryFolder()
  const relay = await startTestRelay(folder, NO_CARRIER, SECTIONS)
  for (const trackingIds of [['GONE0001', 'GONE0002'], ['KEPT0001']])
    expect((await push(relay.publicUrl, pushBody({ trackingIds }))).status).toBe(200)
  for (const held of ['{"id":"gone-00-02"}', '{"ids":["GONE 0002"]}']) await push(relay.publicUrl, held)
  await relay.stop()
  return folder
}

test('wherever a relay is killed in an erasure, the same order leaves nothing after a start', async () => {
  const original = await filled()
  const [stride, folders] = [LONG ? 1 : 6, temporaryFolder()]
  let kills = 0
  for (let step = 1; ; step += stride) {
    const folder = join(folders, `step-${step}`)
    cpSync(original, folder, { recursive: true })
    const [config, place, armed] = [writeConfig(folder, NO_CARRIER, SECTIONS), join(folder, 'relay.db'), join(folder, 'armed')]
    const killed = await runRelay(config, killedAtCommit(step, armed))
    const operate = await operatorOf(killed)
    writeFileSync(armed, '')
    const answer = await operate('DELETE', '/relay/parcels/GONE0001').catch(() => null)
    if (answer !== null && killed.process.exitCode === null) {
      await killed[Symbol.asyncDispose]()
      expect([kills > 3, answer.status]).toEqual([true, 200])
      return
    }
    await killed.ended
    kills += 1
    await using again = await runRelay(config)
    const repeat = await operatorOf(again)
    const repeated = await repeat('DELETE', '/relay/parcels/GONE0001')
    expect([`step ${step}`, repeated.status]).toEqual([`step ${step}`, 200])
    await expect.poll(async () => (await repeat('DELETE', '/relay/parcels/GONE0001')).text).not.toContain('being searched')
    const { body } = await repeat('DELETE', '/relay/parcels/GONE0001')
    expect([`step ${step}`, await tablesWith(search, place), body.unreadable]).toEqual([`step ${step}`, [], 0])
    // A kill before the search of the file loses the words to look for, and the relay says so.
    if (body.storage === 'clean') expect([`step ${step}`, filesWith(search, place)]).toEqual([`step ${step}`, []])
    else expect([`step ${step}`, body.storageBecause]).toEqual([`step ${step}`, expect.stringContaining('prune --compact')])
    expect(await storedNumber(place, 'select count(*) from parcel')).toBe(1)
    expect((await push(again.publicUrl, pushBody({ trackingIds: ['GONE0002'] }))).status).toBe(200)
    expect(await tablesWith(search, place)).toEqual([])
  }
})

/** Makes a backup of a stopped store, as it was when it was killed. */
async function backUp(place: string, directory: string): Promise<string> {
  const copy = `${place}.backup`
  await changeStoredRows(place, 'vacuum into ?', copy)
  const order = { name: 'midst', directory, copy, madeAtMs: Date.now(), version: '1', keys: [], sequence: 0, keep: 2, lastPlace: null }
  for (const work = makeBackup({ ...order, keyFile: `${place}.key` }); work.next().done !== true; );
  return join(directory, 'midst.db')
}

test('a backup of any moment of an erasure, also of one that was killed, brings nothing back', async () => {
  const original = await filled()
  const [stride, folders] = [LONG ? 1 : 15, temporaryFolder()]
  let restored = 0
  for (let step = 1; ; step += stride) {
    const [folder, moment] = [join(folders, `step-${step}`), join(folders, `moment-${step}`)]
    cpSync(original, folder, { recursive: true })
    const [config, place, armed] = [writeConfig(folder, NO_CARRIER, SECTIONS), join(folder, 'relay.db'), join(folder, 'armed')]
    const killed = await runRelay(config, killedAtCommit(step, armed))
    const operate = await operatorOf(killed)
    writeFileSync(armed, '')
    const answer = await operate('DELETE', '/relay/parcels/GONE0001').catch(() => null)
    if (answer !== null && killed.process.exitCode === null) {
      await killed[Symbol.asyncDispose]()
      break
    }
    await killed.ended
    cpSync(folder, moment, { recursive: true })
    const backup = await backUp(join(moment, 'relay.db'), temporaryFolder())

    const again = await runRelay(config)
    const repeat = await operatorOf(again)
    expect((await repeat('DELETE', '/relay/parcels/GONE0001')).status).toBe(200)
    await again[Symbol.asyncDispose]()

    const { args, env } = shipped()
    const order = ['restore', '--config', config, backup, '--yes']
    const { status, stderr } = spawnSync(process.execPath, [...args, ...order], { env, encoding: 'utf8' })
    expect([`step ${step}`, status, stderr]).toEqual([`step ${step}`, 0, expect.any(String)])
    restored += 1
    await using after = await runRelay(config)
    expect((await push(after.publicUrl, pushBody({ trackingIds: ['GONE0001', 'GONE0002'] }))).status).toBe(200)
    expect([`step ${step}`, await tablesWith(search, place)]).toEqual([`step ${step}`, []])
    expect(await storedNumber(place, 'select count(*) from parcel')).toBe(1)
  }
  expect(restored).toBeGreaterThan(0)
})

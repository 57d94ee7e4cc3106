import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { filesWith, searchForNames, tablesWith } from '../support/erasure/traces.ts'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, startTestRelay, writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { killedAtCommit } from '../support/runner/killed-at-commit.ts'
import { LONG } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { storedNumber } from '../support/store/stored-rows.ts'

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

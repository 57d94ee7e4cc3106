import { existsSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { endedJob } from '../../support/relay/moves-of-relay.ts'
import { ADMIN, logIn, push, startTestRelay } from '../../support/relay/relay.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { fillUp, smallDisk } from '../../support/store/small-disk.ts'
import { damageOf } from '../../support/store/stored-rows.ts'

const MB = 1024 * 1024

async function start(folder: string, sections: Record<string, unknown>) {
  const relay = await startTestRelay(folder, NO_CARRIER, sections)
  onTestFinished(() => relay.stop())
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  const operator = await operatorOf(relay)
  const makeBackup = async (name: string) => {
    const { body } = await operator('POST', '/relay/backups', { name })
    return await endedJob(asker, `/relay/jobs/${String(body.id)}`)
  }
  const takesPushes = async (location: string) => (await push(relay.publicUrl, pushBody({ location }))).status
  return { makeBackup, takesPushes }
}

testWith('a small file system')('a full backup folder gets no partial backup, and gets a complete one when it has room', async () => {
  const folder = temporaryFolder()
  const directory = smallDisk(8)
  const { makeBackup, takesPushes } = await start(folder, { backup: { directory } })
  const ballast = fillUp(directory)
  expect(await makeBackup('first')).toMatchObject({ state: 'failed', failure: expect.stringMatching(/no room|the disk is full/) })
  expect([readdirSync(directory), existsSync(join(folder, 'relay.db.backup'))]).toEqual([['ballast'], false])
  expect(await takesPushes('while it is full')).toBe(200)
  rmSync(ballast)
  // This also shows that a backup can be on another file system than the store.
  expect(await makeBackup('first')).toMatchObject({ state: 'done', failure: null })
  expect(readdirSync(directory)).toEqual(['first.db'])
  expect(await damageOf(join(directory, 'first.db'))).toBeNull()
})

testWith('a small file system')('a store whose disk has no room for its copy is not backed up, and accepts pushes', async () => {
  const disk = smallDisk(24)
  const directory = temporaryFolder()
  const sections = { store: `sqlite:${join(disk, 'relay.db')}`, limits: { freeSpaceMin: '4MB' }, backup: { directory } }
  const { makeBackup, takesPushes } = await start(temporaryFolder(), sections)
  for (let nth = 0; nth < 15; nth++) expect(await takesPushes(`${nth}`.padEnd(200_000, 'x'))).toBe(200)
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(join(disk, 'ballast'), Buffer.alloc(bavail * bsize - 6 * MB))
  await expect
    .poll(() => makeBackup('first'), { timeout: 60_000 })
    .toMatchObject({ state: 'failed', failure: expect.stringContaining('its disk has too little room') })
  expect([readdirSync(directory), existsSync(join(disk, 'relay.db.backup'))]).toEqual([[], false])
  // An attempt that began to copy may have filled the disk for a moment. Pushes are accepted after the next look at the disk.
  await expect.poll(() => takesPushes('afterwards')).toBe(200)
})

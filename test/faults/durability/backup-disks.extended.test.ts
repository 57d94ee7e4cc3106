import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { endedJob } from '../../support/relay/moves-of-relay.ts'
import { ADMIN, logIn, push, startTestRelay } from '../../support/relay/relay.ts'
import { runCommand } from '../../support/relay/run-command.ts'
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
  return { makeBackup, takesPushes, operator, stop: relay.stop, databasePath: relay.databasePath }
}

testWith('a small file system')('a full backup folder gets no partial backup, and gets a complete one when it has room', async () => {
  const folder = temporaryFolder()
  const directory = smallDisk(8)
  const { makeBackup, takesPushes } = await start(folder, { backup: { directory } })
  const ballast = fillUp(directory)
  expect(await makeBackup('first')).toMatchObject({
    state: 'failed',
    failure: expect.stringMatching(`the folder has no room|${directory}.*: the disk is full`),
  })
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

testWith('a small file system')('backups whose disk is not mounted fail, are told, and go to no other disk', async () => {
  const folder = temporaryFolder()
  const disk = smallDisk(8)
  const directory = join(disk, 'relay')
  const cron = '* * * * * *'
  const { operator, takesPushes } = await start(folder, { backup: { directory, cron } })
  expect(await takesPushes('Lund')).toBe(200)
  const state = async () => (await operator('GET', '/relay/backups')).body
  await expect.poll(state).toMatchObject({ last: { name: expect.any(String) }, failing: null })
  execFileSync('umount', ['--lazy', disk])
  for (const left of ['empty', 'with a folder'] as const) {
    if (left === 'with a folder') mkdirSync(directory)
    const because = expect.stringContaining(`mounted at ${disk}, and that disk is not mounted now`)
    await expect.poll(state).toMatchObject({ failing: { reason: because }, unreadable: because, backups: [] })
    const byHand = () => operator('POST', '/relay/backups', { name: 'by-hand' })
    // A scheduled backup may be under way.
    await expect.poll(byHand).toMatchObject({ status: 409, body: { detail: because } })
    // What was erased is still in the backups on that disk.
    expect((await operator('DELETE', '/relay/parcels/1001?dryRun=true')).body).toMatchObject({ backupsUnreadable: because })
  }
  expect(readdirSync(directory)).toEqual([])
  // No relay needs to run for this: the store remembers where its last backup was made.
  const alone = await runCommand(['check', '--config', join(folder, 'relay.yaml'), '--json'])
  const seen: unknown = JSON.parse(alone.stdout)
  const because = expect.stringContaining(`mounted at ${disk}, and that disk is not mounted now`)
  expect(seen).toMatchObject({
    lines: expect.arrayContaining([expect.objectContaining({ name: 'backup', state: 'failed', message: because })]),
  })
  // A second is too short for a backup on a slow machine: those that meet another are skipped, and only the lost disk is told.
  const { body } = await operator('GET', '/relay/operator-events?event=backup_failed')
  expect(body).toMatchObject({ events: [{ event: 'backup_failed', reason: because }] })
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'parcel-relay-test', disk])
  await expect.poll(state).toMatchObject({ failing: null })
})

/** The files beside a store with their bytes, except those that SQLite makes while it reads. */
function filesIn(folder: string): ReadonlyMap<string, string> {
  const names = readdirSync(folder).filter((name) => !/-(?:wal|shm)$/.test(name))
  return new Map(names.toSorted().map((name) => [name, readFileSync(join(folder, name), 'base64')]))
}

testWith('a small file system')('S17: a restore that has little or no room names the full disk and changes nothing', async () => {
  const [disk, directory] = [smallDisk(24), temporaryFolder()]
  const folder = join(disk, 'store')
  mkdirSync(folder)
  const relay = await start(folder, { limits: { freeSpaceMin: '4MB' }, backup: { directory } })
  expect(await relay.takesPushes('Lund')).toBe(200)
  expect(await relay.makeBackup('first')).toMatchObject({ state: 'done' })
  await relay.stop()
  const restore = () => runCommand(['restore', '--config', join(folder, 'relay.yaml'), join(directory, 'first.db'), '--yes'])
  const before = filesIn(folder)
  for (const room of [0, 4096, 40_960, 200_000]) {
    const ballast = fillUp(disk)
    truncateSync(ballast, statSync(ballast).size - room)
    const full = await restore()
    const told = expect.stringMatching(
      `(?:the disk is full: there is no room in ${folder} |${relay.databasePath}[.a-z]*: the disk is full)`,
    )
    expect([room, full.code, full.stderr]).toEqual([room, 1, told])
    expect(filesIn(folder)).toEqual(before)
    rmSync(ballast)
  }
  expect(await restore()).toMatchObject({ code: 0 })
})

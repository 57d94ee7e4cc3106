import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { type FeedEvent, flatRows, parsePage } from '../../src/insight/export/flat-rows.rules.ts'
import { pushBody } from '../support/history/builders.ts'
import { faultsIn, manifestIn, rowsIn } from '../support/insight/exported.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { endedJob } from '../support/relay/moves-of-relay.ts'
import { ADMIN, ask, logIn, push, startTestRelay } from '../support/relay/relay.ts'
import { commandsOf } from '../support/relay/run-command.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'
import { fillUp, smallDisk } from '../support/store/small-disk.ts'

async function start(folder: string) {
  const relay = await startTestRelay(folder, NO_CARRIER, { backup: { directory: join(folder, 'backups') } })
  onTestFinished(() => relay.stop())
  const token = await logIn(relay.internalUrl, ADMIN)
  const scan = async (minute: number, ...trackingIds: readonly string[]) => {
    const eventTime = `2026-03-01T10:0${minute}:00.000Z`
    expect((await push(relay.publicUrl, pushBody({ eventTime, trackingIds }))).status).toBe(200)
  }
  const rowsOfFeed = async () => {
    const answer = await ask(relay.internalUrl, token, '/relay/events?after=0&limit=500')
    const events: readonly FeedEvent[] = Object(parsePage(await answer.text())).events
    return events.flatMap(flatRows)
  }
  return { ...relay, token, scan, rowsOfFeed, run: commandsOf(relay) }
}

test('after a restore an export stops and says what to do; with --after-restore it has the rows of the restored feed', async () => {
  const folder = temporaryFolder()
  const warehouse = join(temporaryFolder(), 'warehouse')
  const relay = await start(folder)
  await relay.scan(1, '96000001')
  expect(await relay.run('export', '--to', warehouse)).toMatchObject({ code: 0 })
  await relay.scan(2, '96000002')
  const { body } = await (await operatorOf(relay))('POST', '/relay/backups', { name: 'first' })
  const job = await endedJob({ internalUrl: relay.internalUrl, token: relay.token }, `/relay/jobs/${String(body.id)}`)
  expect(job).toMatchObject({ state: 'done' })
  await relay.scan(3, '96000001', '96000002')
  await relay.scan(4, '96000003')
  expect(await relay.run('export', '--to', warehouse, '--rows', '2')).toMatchObject({ code: 0 })
  const lost = await rowsIn(warehouse)
  const before = manifestIn(warehouse)
  await relay.stop()

  const { args, env } = shipped()
  const restore = [...args, 'restore', '--config', join(folder, 'relay.yaml'), join(folder, 'backups', 'first.db'), '--yes']
  await promisify(execFile)(process.execPath, restore, { env })

  const again = await start(folder)
  const stopped = await again.run('export', '--to', warehouse)
  expect([stopped.code, stopped.stdout]).toEqual([1, ''])
  expect(stopped.stderr).toMatch(
    /the relay was restored from a backup: it has no events after sequence 2,.*\(feed_rewound\).*--after-restore/,
  )
  expect(manifestIn(warehouse)).toEqual(before)
  await again.scan(5, '96000002')
  // What the relay has recorded since does not hide that events are lost.
  expect((await again.run('export', '--to', warehouse)).stderr).toContain('(feed_rewound)')
  const went = await again.run('export', '--to', warehouse, '--after-restore')
  const told = /: \d+ rows after sequence 1, exported since the backup, removed\.\n.* 2 rows in 1 new file/
  expect(went).toMatchObject({ code: 0, stdout: expect.stringMatching(told) })
  // The first file is older than the backup and stays. The second event was exported as joined, which the restored relay does not know.
  expect(manifestIn(warehouse).files[0]).toEqual(before.files[0])
  const rows = await rowsIn(warehouse)
  expect(rows.map(([sequence]) => sequence)).toEqual((await again.rowsOfFeed()).map(([sequence]) => sequence))
  expect(rows.slice(1)).toEqual((await again.rowsOfFeed()).slice(1))
  expect(rows.length).toBeLessThan(lost.length)
  expect(faultsIn(warehouse)).toEqual([])
  expect((await again.run('export', '--to', warehouse)).stdout).toContain('nothing is new')
})

testWith('a small file system')('an export onto a full disk says so; with room again the next one has every event once', async () => {
  const relay = await start(temporaryFolder())
  const disk = smallDisk(1)
  const warehouse = join(disk, 'warehouse')
  await relay.scan(1, '96000004')
  expect(await relay.run('export', '--to', warehouse)).toMatchObject({ code: 0 })
  const before = manifestIn(warehouse)
  for (const minute of [2, 3, 4]) await relay.scan(minute, '96000004')
  const ballast = fillUp(disk)
  const full = await relay.run('export', '--to', warehouse, '--rows', '2')
  expect([full.code, full.stderr]).toEqual([
    1,
    expect.stringMatching(/^export: .*\/warehouse\/.*: the disk is full\. What was exported before is as it was\.\n$/),
  ])
  expect(manifestIn(warehouse)).toEqual(before)
  expect(faultsIn(warehouse)).toEqual([])
  rmSync(ballast)
  expect(await relay.run('export', '--to', warehouse)).toMatchObject({ code: 0 })
  expect(await rowsIn(warehouse)).toEqual(await relay.rowsOfFeed())
})

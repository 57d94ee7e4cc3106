import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN, push, type Sections, startTestRelay, writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { DAY_MS, NO_CARRIER } from '../support/runner/constants.ts'
import { movableClock } from '../support/runner/movable-clock.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'
import { tablesThatHold } from '../support/store/all-rows.ts'

const [FIRST, SECOND] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'))

async function start(folder: string, sections: Sections = {}) {
  const relay = await startTestRelay(folder, NO_CARRIER, sections)
  let isStopped = false
  const stop = async () => {
    if (!isStopped) await relay.stop()
    isStopped = true
  }
  onTestFinished(stop)
  const reload = (next: Sections) => relay.reload(loadConfig(writeConfig(folder, NO_CARRIER, next), process.env))
  const pushOf = async (id: string, atMs = Date.now()) =>
    (await push(relay.publicUrl, pushBody({ trackingIds: [id], eventTime: new Date(atMs).toISOString() }))).status
  return { ...relay, stop, reload, pushOf, operate: await operatorOf(relay) }
}

test('an erased identifier is still recognised after the at-rest key is replaced', async () => {
  const folder = temporaryFolder()
  const relay = await start(folder, { secrets: { atRestKeys: [FIRST] } })
  await relay.pushOf('GONE0001')
  expect((await relay.operate('DELETE', '/relay/parcels/GONE0001')).status).toBe(200)
  await expect(relay.reload({ secrets: { atRestKeys: [SECOND] } })).rejects.toThrow(/erased parcels.*secrets reseal/)
  await relay.reload({ secrets: { atRestKeys: [SECOND, FIRST] } })
  expect((await relay.operate('POST', '/relay/secrets/reseal')).body).toMatchObject({ resealed: 1, upToDate: 0, unreadable: [] })
  await relay.reload({ secrets: { atRestKeys: [SECOND] } })
  await relay.stop()

  const again = await start(folder, { secrets: { atRestKeys: [SECOND] } })
  expect(await again.pushOf('GONE0001')).toBe(200)
  expect(await tablesThatHold(again.databasePath, ['GONE0001'])).toEqual([])
})

test('a reload applies a new identifierReuseAfter', async () => {
  const folder = temporaryFolder()
  const clock = movableClock(folder)
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER, { identifierReuseAfter: 'never' }), clock.env)
  const pushNow = async () =>
    (await push(relay.publicUrl, pushBody({ trackingIds: ['GONE0001'], eventTime: new Date(clock.now()).toISOString() }))).status
  expect(await pushNow()).toBe(200)
  await (await operatorOf(relay))('DELETE', '/relay/parcels/GONE0001')
  clock.pass(3 * DAY_MS)
  /** Pushes, and asks for the parcel with a new login: tokens of three days ago have expired. */
  const known = async () => {
    expect(await pushNow()).toBe(200)
    return (await (await operatorOf(relay))('GET', '/relay/parcels/GONE0001')).status
  }
  await expect.poll(known).toBe(404)
  writeConfig(folder, NO_CARRIER, { identifierReuseAfter: '1d' })
  expect((await (await operatorOf(relay))('POST', '/relay/reload')).status).toBe(200)
  await expect.poll(known).toBe(200)
})

test('forget says what it would erase, erases with --yes, and accepts a list', async () => {
  const folder = temporaryFolder()
  const relay = await start(folder)
  for (const id of ['GONE0001', 'GONE0002', 'GONE0003']) await relay.pushOf(id)
  const forget = async (...args: readonly string[]) => {
    const { args: command, env } = shipped()
    const child = tieToTest(
      spawn(process.execPath, [...command, 'forget', ...args, '--url', relay.internalUrl], {
        ...ownGroup,
        env: { ...env, PATH: process.env.PATH, RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password },
      }),
    )
    const code = new Promise<number | null>((resolve) => child.on('close', resolve))
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
    return { code: await code, out, err }
  }
  const planned = await forget('GONE0001')
  expect(planned).toMatchObject({ code: 0, out: expect.stringContaining('would erase 1 parcel, 1 identifier') })
  expect(planned.out).toContain('Say --yes')
  expect((await relay.operate('GET', '/relay/parcels/GONE0001')).status).toBe(200)
  const done = await forget('GONE 0001', '--yes')
  expect([done.code, done.out], done.err).toEqual([
    0,
    expect.stringMatching(/erased 1 parcel[\s\S]*storage: (clean|.* still being searched)/),
  ])
  const list = join(folder, 'list.csv')
  writeFileSync(list, 'order;trackingNumber\n1;GONE0002\n2;NEVER001\n3;GONE0003\n')
  const listed = await forget('--file', list, '--yes')
  expect(listed).toMatchObject({ code: 1, out: expect.stringContaining('2 parcels: erased') })
  expect(listed.err).toContain(`${list}:3 holds an identifier that no parcel has`)
  expect(await forget()).toMatchObject({ code: 2 })
  expect(await tablesThatHold(relay.databasePath, ['GONE000'])).toEqual([])
  expect(existsSync(`${relay.databasePath}.tombstones`)).toBe(true)
})

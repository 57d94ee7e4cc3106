import { spawn } from 'node:child_process'
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test, vi } from 'vitest'
import { sqlite } from '../../src/upkeep/sqlite-engine.ts'
import { pushBody } from '../support/history/builders.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { endedJob } from '../support/relay/moves-of-relay.ts'
import { ADMIN, logIn, push, startTestRelay, writeConfig } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { killedAtStep } from '../support/runner/killed-at-step.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { tieToTest } from '../support/runner/tied-process.ts'
import { contentsOf } from '../support/store/moving.ts'
import { damageOf, storedNumber } from '../support/store/stored-rows.ts'

// Each step starts two processes, which takes long on a machine that others use.
vi.setConfig({ testTimeout: 20 * 60_000 })

const store = (folder: string) => join(folder, 'relay.db')
const asidesIn = (folder: string) => readdirSync(folder).filter((name) => /^relay\.db\.before-restore-\w+$/.test(name))

async function restore(folder: string, more: NodeJS.ProcessEnv = {}) {
  const { args, env } = shipped()
  const order = ['restore', '--config', writeConfig(folder, NO_CARRIER), join(folder, 'backups', 'first.db'), '--yes']
  const child = tieToTest(spawn(process.execPath, [...args, ...order], { env: { ...env, ...more }, stdio: ['ignore', 'ignore', 'pipe'] }))
  const ended = new Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal })),
  )
  return { said: await text(child.stderr), ...(await ended) }
}

/** Makes a stopped relay's folder with a backup `first`, and a push before and after it. */
async function backedUp(): Promise<string> {
  const folder = temporaryFolder()
  const relay = await startTestRelay(folder, NO_CARRIER, { backup: { directory: join(folder, 'backups') } })
  const operate = await operatorOf(relay)
  await operate('POST', '/relay/endpoints', { name: 'shop', url: 'http://10.0.0.1/', enabled: false })
  expect((await push(relay.publicUrl, pushBody({ trackingIds: ['1001'] }))).status).toBe(200)
  const { body } = await operate('POST', '/relay/backups', { name: 'first' })
  const token = await logIn(relay.internalUrl, ADMIN)
  expect(await endedJob({ internalUrl: relay.internalUrl, token }, `/relay/jobs/${String(body.id)}`)).toMatchObject({ state: 'done' })
  expect((await push(relay.publicUrl, pushBody({ trackingIds: ['1002'] }))).status).toBe(200)
  await relay.stop()
  // Without a key file, the restore must also put back the backup's key file.
  rmSync(`${store(folder)}.key`, { force: true })
  return folder
}

test('wherever a restore is killed, it loses nothing, and the same command finishes it', async () => {
  const original = await backedUp()
  const backup = await contentsOf({ engine: sqlite, place: join(original, 'backups', 'first.db') })
  const found = { refused: 0, finished: 0 }
  let step = 1
  for (; ; step++) {
    const folder = join(temporaryFolder(), 'copy')
    cpSync(original, folder, { recursive: true })
    const killed = await restore(folder, killedAtStep(step))
    if (killed.signal === null) {
      expect([killed.code, killed.said]).toEqual([0, expect.any(String)])
      break
    }
    const place = `step ${step}`
    if (existsSync(`${store(folder)}.restoring`)) {
      found.refused += 1
      await expect(sqlite.openWriteStore(store(folder)), place).rejects.toThrow('was interrupted')
    } else {
      // Either no file has been replaced yet, or all files have.
      await (await sqlite.openWriteStore(store(folder))).close()
      expect([place, await storedNumber(store(folder), 'select count(*) from inbox')]).toEqual([
        place,
        asidesIn(folder).length === 0 ? 2 : 1,
      ])
    }
    const again = await restore(folder)
    expect([place, again.code, again.said]).toEqual([place, 0, expect.any(String)])
    if (again.said === '') found.finished += 1
    const restored = await contentsOf({ engine: sqlite, place: store(folder) })
    for (const table of ['identifier', 'content', 'sighting', 'inbox', 'feed', 'endpoint'])
      expect([place, table, restored.contents.get(table)]).toEqual([place, table, backup.contents.get(table)])
    const [first = ''] = asidesIn(folder)
    expect([place, await storedNumber(join(folder, first), 'select count(*) from inbox'), await damageOf(join(folder, first))]).toEqual([
      place,
      2,
      null,
    ])
    expect([place, readdirSync(folder).filter((name) => /\.restor/.test(name))]).toEqual([place, []])
    await (await sqlite.openWriteStore(store(folder))).close()
    rmSync(folder, { recursive: true })
  }
  expect(step).toBeGreaterThan(10)
  // The file `.restoring` is written whole, so wherever it is, the next restore finishes.
  expect(found).toEqual({ refused: expect.toSatisfy((count: number) => count >= 4), finished: found.refused })
})

import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { ADMIN, push, SHOP, writeConfig } from '../../support/relay/relay.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const run = promisify(execFile)

async function backup(args: readonly string[], login = ADMIN) {
  const { args: relay, env } = shipped()
  const all = { ...env, RELAY_USERNAME: login.username, RELAY_PASSWORD: login.password }
  return await run(process.execPath, [...relay, 'backup', ...args], { env: all }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

test('backup makes a backup of a running relay, or says why it cannot', async () => {
  const folder = temporaryFolder()
  const directory = join(folder, 'backups')
  await using relay = await runRelay(writeConfig(folder, NO_CARRIER, { backup: { directory } }))
  expect((await push(relay.publicUrl, pushBody())).status).toBe(200)
  const url = ['--url', relay.internalUrl]
  expect(await backup(url)).toMatchObject({ code: 2 })
  expect(await backup([...url, '../up'])).toMatchObject({ code: 1, stderr: expect.stringContaining('name must be 1 to 80 letters') })
  expect(await backup([...url, 'first'], SHOP)).toMatchObject({ code: 1, stderr: expect.stringContaining('admin') })
  const made = await backup([...url, 'first'])
  expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/backups\/first\.db: [\d,]+ bytes, checked and complete\.\n$/)])
  for (const line of made.stderr.split('\n').filter(Boolean)) expect(line).toMatch(/^(?:copying the store|checking the copy|bringing it)/)
  const json = await backup([...url, '--json', 'second'])
  expect([json.code, JSON.parse(json.stdout)]).toMatchObject([0, { kind: 'backup', state: 'done', task: { name: 'second' } }])
  expect(await backup([...url, 'first'])).toMatchObject({ code: 1, stderr: expect.stringContaining('There is a backup "first" already') })
  expect(readdirSync(directory).toSorted()).toEqual(['first.db', 'second.db'])
})

test('a kill during a backup leaves no incomplete backup, and the next start cleans up', async () => {
  const folder = temporaryFolder()
  const directory = join(folder, 'backups')
  const config = writeConfig(folder, NO_CARRIER, { backup: { directory } })
  const copy = join(folder, 'relay.db.backup')
  {
    await using relay = await runRelay(config)
    const killed = backup(['--url', relay.internalUrl, 'first'])
    await expect
      .poll(
        () => existsSync(copy) || (existsSync(directory) && readdirSync(directory).some((name) => /^first\.db\.\w+\.part$/.test(name))),
        { timeout: 60_000, interval: 1 },
      )
      .toBe(true)
    relay.process.kill('SIGKILL')
    await relay.ended
    await killed
    // If the backup was completed just before the kill, nothing is left to check.
    if (!existsSync(copy)) return
    expect(existsSync(join(directory, 'first.db'))).toBe(false)
  }
  await using again = await runRelay(config)
  expect(existsSync(copy)).toBe(false)
  expect(await backup(['--url', again.internalUrl, 'first'])).toMatchObject({ code: 0 })
})

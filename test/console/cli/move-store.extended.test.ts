import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createProgressLine } from '../../../src/console/cli/terminal.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { pushBody } from '../../support/history/builders.ts'
import { onPostgres } from '../../support/relay/on-postgres.ts'
import { ADMIN, push, writeConfig } from '../../support/relay/relay.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { moveStore as moveWithoutRelay } from '../../support/store/moving.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const run = promisify(execFile)

async function moveStore(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { args: relay, env: shippedEnv } = shipped()
  const all = { ...shippedEnv, RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password, ...env }
  return await run(process.execPath, [...relay, 'move-store', ...args], { env: all }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

test('move-store says what is missing, moves a running relay’s store, and --undo goes back', async () => {
  const folder = temporaryFolder()
  const config = writeConfig(folder, NO_CARRIER)
  const moved = join(folder, 'moved.db')
  {
    await using relay = await runRelay(config)
    expect((await push(relay.publicUrl, pushBody())).status).toBe(200)
    const nowhere = await moveStore(['--url', relay.internalUrl, '--to', 'mysql://x'])
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('must be sqlite:PATH or postgres://')])
    const bare = await moveStore(['--url', relay.internalUrl], { RELAY_MOVE_TO: 'postgres://relay@127.0.0.1:9/relay' })
    expect([bare.code, bare.stderr]).toEqual([
      1,
      expect.stringContaining(
        'PostgreSQL needs secrets.atRestKeys. First write secrets: { atRestKeys: [{ file: PATH }] } with the path of relay.db.key',
      ),
    ])
    const { code, stdout, stderr } = await moveStore(['--url', relay.internalUrl, '--to', `sqlite:${moved}`])
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^\d+ rows were moved to .*moved\.db, and the relay works there now\.\nName it in `store`/),
    ])
    for (const line of stderr.trimEnd().split('\n')) expect(line).toMatch(/^(?:copying|comparing|ready to switch|switching)/)
    // The old relay may still answer 503 on a connection that is open. Push again, as the carrier does.
    await expect.poll(async () => (await push(relay.publicUrl, pushBody({ location: 'After' }))).status).toBe(200)
    const again = await moveStore(['--url', relay.internalUrl, '--to', `sqlite:${join(folder, 'relay.db')}`])
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('was moved to')])
    const early = await moveStore(['--undo', '--config', config])
    expect([early.code, early.stderr]).toEqual([
      1,
      expect.stringContaining(`a relay works on ${moved} (pid ${relay.process.pid}). What it accepts would be lost: stop it first`),
    ])
    await relay.stop()
  }
  const undone = await moveStore(['--undo', '--config', config])
  expect([undone.code, undone.stdout]).toEqual([
    0,
    expect.stringMatching(
      /^The store is in use again.*\. Everything that came since then is only in .*moved\.db, which nothing uses now\.\n$/,
    ),
  ])
  await (await sqlite.openWriteStore(join(folder, 'relay.db'))).close()
  expect(await moveStore(['--undo', '--config', config])).toMatchObject({ code: 1, stderr: expect.stringContaining('was not moved') })
})

test('a move to PostgreSQL takes the address from the environment', async () => {
  const folder = temporaryFolder()
  const { url } = await createDatabase('nothing')
  const config = writeConfig(folder, NO_CARRIER, { secrets: (await onPostgres(url)).secrets })
  await using relay = await runRelay(config)
  const mistyped = await moveStore(['--url', relay.internalUrl], { RELAY_MOVE_TO: `${url}?sslmod=require` })
  expect([mistyped.code, mistyped.stderr]).toEqual([
    1,
    expect.stringContaining('The new store has a parameter in its address that is not known'),
  ])
  const done = await moveStore(['--url', relay.internalUrl, '--json'], { RELAY_MOVE_TO: url })
  expect([done.code, JSON.parse(done.stdout)]).toMatchObject([0, { kind: 'move', state: 'done' }])
  expect(done.stdout).not.toContain('only-for-tests')
  const early = await moveStore(['--undo', '--config', config])
  expect([early.code, early.stderr]).toEqual([
    1,
    expect.stringContaining(
      '(replicas: 1; one that was killed counts until its lease runs out). What it accepts would be lost: stop it first',
    ),
  ])
  await relay.stop()
  const undone = await moveStore(['--undo', '--config', config])
  expect([undone.code, undone.stdout]).toEqual([0, expect.stringContaining('which nothing uses now')])
})

test('--undo with a wrong config names each problem and its place', async () => {
  const config = join(temporaryFolder(), 'relay.yaml')
  writeFileSync(config, 'listen: { public: { port: 8080 } }\nstore: relay.db\n')
  const { code, stderr } = await moveStore(['--undo', '--config', config])
  expect([code, stderr]).toEqual([1, expect.stringMatching(/relay\.yaml:2:\d+ store.*the config has/s)])
})

test('a move is undone even if the new store is gone, and the output says that it is gone', async () => {
  const folder = temporaryFolder()
  const config = writeConfig(folder, NO_CARRIER)
  const [old, next] = [
    { engine: sqlite, place: join(folder, 'relay.db') },
    { engine: sqlite, place: join(folder, 'next.db') },
  ]
  await (await sqlite.openWriteStore(old.place)).close()
  await moveWithoutRelay(old, next)
  rmSync(next.place)
  const undone = await moveStore(['--undo', '--config', config])
  expect([undone.code, undone.stdout]).toEqual([
    0,
    expect.stringContaining(`${next.place}. It is not known whether a relay uses that store: ${next.place} is gone. If one does, stop it`),
  ])
  await (await sqlite.openWriteStore(old.place)).close()
})

test('move-store accepts either --to or --undo', async () => {
  expect(await moveStore([])).toMatchObject({ code: 2, stderr: 'move-store: name the new store with --to, or use --undo\n' })
  expect(await moveStore(['--undo', '--to', 'sqlite:x'])).toMatchObject({ code: 2 })
})

test('progress is one bar on a terminal, and a line for each step elsewhere', () => {
  const show = (isTTY: boolean) => {
    let shown = ''
    const line = createProgressLine({ isTTY, write: (text) => (shown += text) })
    line.show('copying', 50, 200, 'rows')
    line.show('copying', 100, 200, 'rows')
    line.show('ready', 0, 0, 'rows')
    line.end()
    return shown
  }
  expect(show(false)).toBe('copying: 200 rows\nready\n')
  expect(show(true)).toBe(
    `\rcopying [======                  ]  25 % 50 of 200 rows\rcopying [============            ]  50 % 100 of 200 rows\r${'ready'.padEnd(56)}\n`,
  )
})

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { push, spawnRelay, writeConfig } from '../../support/relay/relay.ts'
import { operatorEnv, runCommand } from '../../support/relay/run-command.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

/** Prints what is loaded, a URL a line. */
const HOOK = `
import { registerHooks } from 'node:module'
registerHooks({ load: (url, context, next) => (process.stderr.write(url + '\\n'), next(url, context)) })`

function loadedBy(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(HOOK)}`, 'src/main.ts', ...args],
    { encoding: 'utf8', env: { PATH: process.env.PATH, ...env } },
  )
  const urls = stderr.split('\n').filter((line) => line.startsWith('file://'))
  return {
    stdout,
    status,
    own: urls.filter((url) => !url.includes('/node_modules/')).length,
    libraries: new Set(urls.flatMap((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])),
  }
}

const HEAVY = ['kysely', 'better-sqlite3', 'pg', 'koa', 'undici', 'jose', '@node-rs/argon2']

test('--version loads no command', () => {
  const { stdout, status, own, libraries } = loadedBy(['--version'])
  expect([stdout, status]).toEqual(['0.1.0\n', 0])
  expect(own).toBeLessThan(15)
  expect([...libraries]).toEqual(['commander'])
})

test('no command loads a store, a server or a cipher before it needs one', () => {
  const { stdout, libraries } = loadedBy(['--help'])
  expect(stdout).toContain('move-store')
  expect(HEAVY.filter((name) => libraries.has(name))).toEqual([])
})

test('what commands compile is kept in the cache of the user, or of XDG_CACHE_HOME', () => {
  const home = temporaryFolder()
  loadedBy(['--version'], { HOME: home })
  expect(readdirSync(join(home, '.cache', 'parcel-relay'))).not.toEqual([])
  loadedBy(['--version'], { HOME: home, XDG_CACHE_HOME: join(home, 'elsewhere') })
  expect(readdirSync(join(home, 'elsewhere', 'parcel-relay'))).not.toEqual([])
})

test('a command works for a user without a home', () => {
  for (const home of ['/', '/nonexistent', 'not/absolute']) expect(loadedBy(['--version'], { HOME: home }).status).toBe(0)
})

/** Writes the paths of what is loaded, by workers too, to the file LOADED. */
const NOTING = `
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
registerHooks({ load: (url, context, next) => (appendFileSync(process.env.LOADED, url + '\\n'), next(url, context)) })`

test('a running relay does not load the library that writes Parquet, nor does an export into another format', async () => {
  const folder = temporaryFolder()
  const noting = (name: string) => ({
    LOADED: join(folder, name),
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(NOTING)}`,
  })
  /** Whether one of the loaded files, which are bundles of many modules, has the library in it. */
  const hasLibrary = (name: string) => {
    const files = readFileSync(join(folder, name), 'utf8').split('\n')
    const ours = files.filter((url) => url.includes('/dist/')).map((url) => readFileSync(fileURLToPath(url), 'utf8'))
    expect(ours.length).toBeGreaterThan(3)
    return ours.some((source) => source.includes('ParquetWriter'))
  }
  const relay = await spawnRelay(writeConfig(folder, NO_CARRIER), noting('serve'))
  await push(relay.publicUrl, pushBody({ trackingIds: ['94000009'] }))
  for (const format of ['ndjson', 'parquet']) {
    const run = await runCommand(['export', '--to', join(folder, `as-${format}`), '--format', format], {
      ...operatorEnv(relay),
      ...noting(format),
    })
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining('1 row in 1 new file') })
  }
  relay.process.kill('SIGTERM')
  await relay.ended
  expect(['serve', 'ndjson', 'parquet'].filter(hasLibrary)).toEqual(['parquet'])
})

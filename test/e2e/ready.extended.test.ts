import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { distinctPushes } from '../support/network/push-load.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { shipped } from '../support/runner/shipped.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

const TRIES = 20
/** The limit is generous, because it must only detect a start that does far too much. */
const RATIO_MAX = 6

/** A program that does the least that any relay must do: load these libraries, open a store and listen. */
const LIBRARIES_ALONE = `
  import Database from 'better-sqlite3'
  import Koa from 'koa'
  import 'kysely'
  const db = new Database(process.argv[2])
  db.pragma('journal_mode = WAL')
  db.exec('CREATE TABLE parcels (number TEXT)')
  new Koa().listen(0, '127.0.0.1', () => console.log('listening'))
`

/** Starts a program, and waits for its first line that contains these words. */
async function started(args: readonly string[], words: string) {
  const startedAtMs = performance.now()
  const child = tieToTest(spawn(process.execPath, args, { ...ownGroup, stdio: ['ignore', 'pipe', 'inherit'], env: shipped().env }))
  const ended = once(child, 'exit')
  const said = new Promise<string>((resolveLine) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes(words)) resolveLine(line)
    })
  })
  const line = await Promise.race([said, ended.then(([code]) => Promise.reject(new Error(`it ended with ${code}`)))])
  return { child, ended, line, tookMs: performance.now() - startedAtMs }
}

/** Starts the relay on an empty store, pushes to it, and ends it. Returns the milliseconds until it is ready. */
async function relayMs(main: string, folder: string): Promise<number> {
  const config = writeConfig(folder, 'http://127.0.0.1:9', { log: { level: 'info' } })
  const { child, ended, line, tookMs } = await started([main, 'serve', '--config', config], '"msg":"relay ready"')
  const publicUrl = /"public":"([^"]+)"/.exec(line)?.[1] ?? ''
  expect((await push(publicUrl, distinctPushes(1).next())).status).toBe(200)
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  return tookMs
}

async function librariesMs(program: string, folder: string): Promise<number> {
  const { child, ended, tookMs } = await started([program, join(folder, 'alone.db')], 'listening')
  child.kill('SIGKILL')
  await ended
  return tookMs
}

test('the compiled relay starts in less than six times the time that its libraries alone take', async () => {
  const { folder: installed, program: relay } = shipped()
  const program = join(installed, 'alone.mjs')
  writeFileSync(program, LIBRARIES_ALONE)
  const pairs: { relay: number; libraries: number }[] = []
  const ratio = () => Math.min(...pairs.map(({ relay, libraries }) => relay / libraries))
  // Alternate and repeat the starts, because other tests may slow down any of them.
  while (pairs.length < TRIES && ratio() >= RATIO_MAX) {
    const folder = join(temporaryFolder(), String(pairs.length))
    mkdirSync(folder)
    const libraries = await librariesMs(program, folder)
    pairs.push({ libraries, relay: await relayMs(relay, folder) })
  }
  const told = pairs.map(({ relay, libraries }) => `${Math.round(relay)} ms (its libraries alone ${Math.round(libraries)})`)
  console.info(`ready after ${told.join(', ')}`)
  expect(ratio()).toBeLessThan(RATIO_MAX)
})

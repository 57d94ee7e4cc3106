import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pushBody } from '../support/builders.ts'
import { push, spawnRelay, writeConfig } from '../support/relay.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { parseTrace, type SystemCall, startTrace } from '../support/watched-calls.ts'

const CALLS = ['fsync', 'fdatasync', 'pwrite64', 'write', 'writev', 'sendto', 'sendmsg']
const PUSHES = 30
const NOBODY = 'http://127.0.0.1:9'

/** Of the answers that say 200, how many came after a sync that itself came after the last write to the log. */
function answersIn(trace: readonly SystemCall[]): { readonly answers: number; readonly durable: number; readonly syncs: number } {
  const ofLog = (call: SystemCall) => /^\d+<[^>]*-wal>/.test(call.args)
  const isSync = ({ name, succeeded }: SystemCall) => (name === 'fsync' || name === 'fdatasync') && succeeded
  const log = trace.filter(ofLog)
  const answers = trace.filter((call) => call.args.includes('"HTTP/1.1 200'))
  let from = 0
  const durable = answers.filter(({ enteredAt }) => {
    const before = log.filter((call) => call.enteredAt >= from && call.returnedAt < enteredAt)
    from = enteredAt
    const written = before.findLastIndex(({ name }) => name.startsWith('pwrite'))
    return written >= 0 && before.slice(written).some(isSync)
  })
  return { answers: answers.length, durable: durable.length, syncs: log.filter(isSync).length }
}

test('F2: every 200 for a new push is sent after its commit was written to the log and the log synced to disk', async () => {
  const folder = temporaryFolder()
  const trace = startTrace(folder, CALLS)
  const relay = await spawnRelay(writeConfig(folder, NOBODY, { log: { level: 'info' } }), trace.prefix)
  for (let at = 0; at < PUSHES; at++) {
    const body = pushBody({ trackingIds: [`${10_000 + at}`] })
    expect((await push(relay.publicUrl, body)).status).toBe(200)
  }
  // In WAL mode the file says so itself: its read and write versions are 2.
  expect([...readFileSync(join(folder, 'relay.db')).subarray(18, 20)]).toEqual([2, 2])
  relay.process.kill('SIGTERM')
  expect(await relay.ended).toEqual({ code: 0, signal: null })
  const { answers, durable, syncs } = answersIn(await trace.read(relay.process.pid))
  expect([answers, durable]).toEqual([PUSHES, PUSHES])
  expect(syncs).toBeGreaterThanOrEqual(PUSHES)
})

/** Commits and says 200 after each, on a database with this setting. */
const COMMITTER = `
  import Database from 'better-sqlite3'
  import { writeSync } from 'node:fs'
  const [path, setting] = process.argv.slice(1)
  const db = new Database(path)
  db.pragma('journal_mode = WAL')
  if (setting !== '') db.pragma('synchronous = ' + setting)
  db.exec('create table pushed (body)')
  const insert = db.prepare('insert into pushed values (1)')
  for (let at = 0; at < ${PUSHES}; at++) {
    insert.run()
    writeSync(1, 'HTTP/1.1 200 OK')
  }`

test.each([
  { setting: 'FULL', durable: PUSHES, syncs: PUSHES },
  { setting: 'NORMAL', durable: 0, syncs: 0 },
  // The trap: what the driver does in WAL mode when nothing is set.
  { setting: '', durable: 0, syncs: 0 },
])('the watch tells synchronous=$setting by what it syncs', async ({ setting, durable, syncs }) => {
  const folder = temporaryFolder()
  const trace = startTrace(folder, CALLS)
  const [command = '', ...args] = trace.prefix
  const script = ['--input-type=module', '-e', COMMITTER, '--', join(folder, 'any.db'), setting]
  const child = spawn(command, [...args, process.execPath, ...script], { stdio: ['ignore', 'ignore', 'inherit'] })
  await once(child, 'exit')
  const seen = answersIn(await trace.read(child.pid))
  expect([seen.answers, seen.durable]).toEqual([PUSHES, durable])
  // Few more: one when the log is made, one when it is carried over at the end.
  expect(seen.syncs).toBeGreaterThanOrEqual(syncs)
  expect(seen.syncs).toBeLessThanOrEqual(syncs + 3)
})

test('a call that another thread interrupts in the trace ends where it is resumed', () => {
  const text = [
    '7 fdatasync(3</x/relay.db-wal> <unfinished ...>',
    '8 write(9<socket:[1]>, "HTTP/1.1 200 OK"..., 15) = 15',
    '7 <... fdatasync resumed>) = 0',
    '7 fdatasync(3</x/relay.db-wal>) = -1 EIO (Input/output error)',
    '7 +++ exited with 0 +++',
  ].join('\n')
  expect(parseTrace(text).map(({ name, enteredAt, returnedAt, succeeded }) => [name, enteredAt, returnedAt, succeeded])).toEqual([
    ['write', 1, 1, true],
    ['fdatasync', 0, 2, true],
    ['fdatasync', 3, 3, false],
  ])
})

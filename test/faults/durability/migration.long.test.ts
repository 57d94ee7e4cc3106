import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import { openSqliteWriter } from '../../../src/core/store/sqlite/sqlite.ts'
import { SQLITE_HOOKS } from '../../../src/upkeep/sqlite-engine.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { NotReady, spawnTraced } from '../../support/store/strace.ts'

/** Which calls of each kind kill the first start, counted from 1. `npm run faults` tries far more calls than `npm test`. */
const CALLS: Readonly<Record<string, readonly number[]>> = byForm(
  { pwrite64: [1, 6], 'fsync,fdatasync': [1] },
  { pwrite64: upTo(60), 'fsync,fdatasync': upTo(20) },
)

const test = testWith('strace')

test.each(Object.keys(CALLS))(
  'S14: a first start killed at any %s leaves the old or the new schema, and can be repeated',
  async (calls) => {
    const parent = temporaryFolder()
    const whole = await schemaOf(join(parent, 'whole.db'))
    const told: string[] = []
    for (const when of CALLS[calls] ?? []) told.push(await trial(parent, calls, when, whole))
    // At least one start must be killed early, or the test shows nothing about an unfinished start.
    expect(told).toContain('killed')
  },
)

test('S14: a store that a newer relay has migrated is refused with the reason, and unchanged', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const before = await schemaOf(path)
  const db = new Database(path)
  db.prepare("INSERT INTO kysely_migration (name, timestamp) VALUES ('9999-later', '2030-01-01T00:00:00Z')").run()
  db.exec('CREATE TABLE later (id INTEGER)')
  db.close()
  await expect(openSqliteWriter(path, SQLITE_HOOKS)).rejects.toThrow(new RegExp(`${path}.*it was made by a newer one`))
  expect(tables(path)).toEqual([...before, 'CREATE TABLE later (id INTEGER)'].toSorted())
})

test('a store from before the first release is left unchanged and refused, with what to do', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const before = await schemaOf(path)
  const db = new Database(path)
  db.prepare("UPDATE kysely_migration SET name = '0001-initial'").run()
  db.close()
  await expect(openSqliteWriter(path, SQLITE_HOOKS)).rejects.toThrow(
    new RegExp(`${path}.*made by a version from before the first release.*Start on a new store`),
  )
  expect(tables(path)).toEqual(before)
})

async function trial(parent: string, calls: string, when: number, whole: readonly string[]): Promise<'killed' | 'started'> {
  const folder = join(parent, `${calls}-${when}`)
  mkdirSync(folder)
  const path = join(folder, 'relay.db')
  const files = ['', '-wal', '-shm', '-journal', '.lock', '.marker'].flatMap((suffix) => ['-P', `${path}${suffix}`])
  const strace = [...files, '-e', `trace=${calls}`, '-e', `inject=${calls}:signal=SIGKILL:when=${when}`, '-o', join(folder, 'trace')]
  const killed = await spawnTraced(folder, { strace }).then(
    async (relay) => {
      await relay.kill().catch(() => undefined)
      return false
    },
    (failure: unknown) => {
      if (failure instanceof NotReady) return true
      throw failure
    },
  )
  const label = `${calls} ${when}`
  const left = tables(path)
  expect([[], whole], label).toContainEqual(left)
  expect(await schemaOf(path), label).toEqual(whole)
  return killed ? 'killed' : 'started'
}

async function schemaOf(path: string): Promise<readonly string[]> {
  await (await openSqliteWriter(path, SQLITE_HOOKS)).close()
  return tables(path)
}

/** Reads a database as the next relay would find it. Returns an empty list if there is no database. */
function tables(path: string): readonly string[] {
  let db: Database.Database
  try {
    db = new Database(path, { fileMustExist: true, readonly: true })
  } catch {
    return []
  }
  try {
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
    return db.prepare<[], string>('SELECT sql FROM sqlite_master WHERE sql IS NOT NULL').pluck().all().map(String).toSorted()
  } finally {
    db.close()
  }
}

function upTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, at) => at + 1)
}

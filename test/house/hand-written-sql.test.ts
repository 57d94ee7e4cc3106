import { globSync, readFileSync } from 'node:fs'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'
import { BOUNDED } from '../support/store/bounded-tables.ts'

/** A call that hands SQL to a driver. All other SQL is a `statement()`, whose plan a test asks for (`all-plans`, `query-plans`). */
const HANDED = /\.(?:prepare|exec|query|pragma|execute|executeQuery)(?:<[^(]*>)?\(/

/** Why SQL that is no `statement()` may read whole tables, or cannot. `bounded`: it names only tables that stay small, which this test checks. */
const FILES: Readonly<Record<string, string>> = {
  'sqlite/backups/backups-without.ts': 'an order to erase: it reads backups, on a thread of its own',
  'sqlite/backups/inspect-stores.ts': 'commands: restore and check',
  'sqlite/backups/make-backup.ts': 'a job: it reads the copy',
  'sqlite/backups/manifest.ts': 'a job: it reads the copy',
  'sqlite/backups/numbers.ts': 'a command: restore',
  'sqlite/backups/restore-backup.ts': 'a command: restore',
  'sqlite/backups/swap-store.ts': 'a command: restore',
  'sqlite/checkpoint-thread.ts': 'bounded',
  'sqlite/clean-storage.ts': 'bounded',
  'sqlite/compact.ts': 'a command: prune --compact',
  'sqlite/lock.ts': 'bounded',
  'sqlite/migrate.ts': 'a start',
  'sqlite/moving/move-mark.ts': 'a job: the move of a store',
  'sqlite/moving/move-source.ts': 'a job: the move of a store',
  'sqlite/moving/move-target.ts': 'a job: the move of a store',
  'sqlite/moving/moves.ts': 'a job: the move of a store',
  'sqlite/moving/stored-tables.ts': 'a job: the move of a store',
  'sqlite/sqlite.ts': 'bounded',
  'postgres/admin/alone.ts': 'bounded',
  'postgres/admin/lesson-table.ts': 'bounded',
  'postgres/admin/lost-commits.ts': 'bounded',
  'postgres/admin/replica-table.ts': 'bounded',
  'postgres/backups/mark-restored.ts': 'a command: restore --mark',
  'postgres/inspect-server.ts': 'a command: check',
  'postgres/moving/postgres-move-client.ts': 'a job: the move of a store',
  'postgres/moving/postgres-move-mark.ts': 'a job: the move of a store',
  'postgres/moving/postgres-move-source.ts': 'a job: the move of a store',
  'postgres/moving/postgres-move-target.ts': 'a job: the move of a store',
  'postgres/postgres-engine.ts': 'bounded',
  'postgres/postgres-migrate.ts': 'a start',
  'postgres/postgres-session.ts': 'bounded',
  'postgres/postgres.ts': 'bounded',
  'postgres/refuse-unsafe-server.ts': 'bounded',
  'postgres/server-watch.ts': 'bounded',
}

/** Returns the tables that the SQL in a source names. */
function tablesIn(path: string, source: string): readonly string[] {
  const texts: string[] = []
  new Visitor({
    Literal: ({ value }) => void (typeof value === 'string' && texts.push(value)),
    TemplateLiteral: ({ quasis }) => void texts.push(quasis.map(({ value }) => value.raw).join('x')),
  }).visit(parseSync(path, source).program)
  return (
    texts
      .filter((text) => /^\s*(?:select|insert|update|delete|with|lock)\s/.test(text))
      .flatMap((text) => [...text.matchAll(/\b(?:from|join|into|update|table) "?([a-z_]+)\b"?(?!\()/g)].map(([, table = '']) => table))
      // Of an update on a conflict, and the name of a part.
      .filter((table) => !['set', 'alive'].includes(table))
  )
}

const read = (path: string) => readFileSync(`src/core/store/${path}`, 'utf8')

test('every module that hands SQL of its own to a driver is listed with a reason', () => {
  const handing = globSync('**/*.ts', { cwd: 'src/store' }).filter((path) => !path.includes('/migrations/') && HANDED.test(read(path)))
  expect(handing.toSorted()).toEqual(Object.keys(FILES).toSorted())
})

test('SQL of its own that a module runs beside a relay reads only small tables', () => {
  const bounded = Object.keys(FILES).filter((path) => FILES[path] === 'bounded')
  const tables = bounded.flatMap((path) => tablesIn(path, read(path)).map((table) => [path, table] as const))
  expect(tables.length).toBeGreaterThan(10)
  expect(tables.filter(([, table]) => !(table in BOUNDED))).toEqual([])
  expect(tablesIn('x.ts', 'db.prepare(`select 1 from delivery where exists (select 1 from "inbox")`)')).toEqual(['delivery', 'inbox'])
})

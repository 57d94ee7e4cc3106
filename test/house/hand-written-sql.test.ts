import { globSync, readFileSync } from 'node:fs'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'
import { BOUNDED } from '../support/store/bounded-tables.ts'

/** A call that hands SQL to a driver. All other SQL is a `statement()`, whose plan a test asks for (`all-plans`, `query-plans`). */
const HANDED = /\.(?:prepare|exec|query|pragma|execute|executeQuery)(?:<[^(]*>)?\(/

/** Why SQL that is no `statement()` may read whole tables, or cannot. `bounded`: it names only tables that stay small, which this test checks. */
const FILES: Readonly<Record<string, string>> = {
  'upkeep/backups/comparing-thread.ts': 'an order to erase: it reads backups, on a thread of its own',
  'upkeep/restore/inspect-stores.ts': 'commands: restore and check',
  'upkeep/backups/make-backup.ts': 'a job: it reads the copy',
  'upkeep/backups/backup-folder.ts': 'a job: it reads the copy',
  'upkeep/restore/restore-backup.ts': 'a command: restore',
  'upkeep/restore/swap-store.ts': 'a command: restore',
  'core/store/sqlite/checkpoint-thread.ts': 'bounded',
  'upkeep/erasure/clean-storage.ts': 'bounded',
  'upkeep/retention/compact.ts': 'a command: prune --compact',
  'core/store/sqlite/lock.ts': 'bounded',
  'core/store/sqlite/migrate.ts': 'a start',
  'upkeep/moving/sqlite-move-mark.ts': 'a job: the move of a store',
  'upkeep/moving/move-target.ts': 'a job: the move of a store',
  'upkeep/moving/sqlite-moves.ts': 'a job: the move of a store',
  'core/store/sqlite/sqlite.ts': 'bounded',
  'server/postgres/admin/lost-commits.ts': 'bounded',
  'server/postgres/admin/replica-table.ts': 'bounded',
  'server/postgres/server-stores.ts': 'a command: check, restore --mark',
  'server/postgres/moving/postgres-move-mark.ts': 'a job: the move of a store',
  'server/postgres/moving/postgres-moves.ts': 'a job: the move of a store',
  'server/postgres/moving/postgres-move-target.ts': 'a job: the move of a store',
  'server/postgres/postgres-engine.ts': 'bounded',
  'server/postgres/postgres-migrate.ts': 'a start',
  'server/postgres/postgres.ts': 'bounded',
  'server/postgres/server-watch.ts': 'bounded',
}

/** Where stores are read and written. */
const STORES = ['core/store/**/*.ts', 'server/postgres/**/*.ts', 'upkeep/{backups,erasure,moving,restore,retention}/*.ts']

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

const read = (path: string) => readFileSync(`src/${path}`, 'utf8')

test('every module that hands SQL of its own to a driver is listed with a reason', () => {
  const handing = globSync(STORES, { cwd: 'src' }).filter((path) => !path.includes('/migrations/') && HANDED.test(read(path)))
  expect(handing.toSorted()).toEqual(Object.keys(FILES).toSorted())
})

test('SQL of its own that a module runs beside a relay reads only small tables', () => {
  const bounded = Object.keys(FILES).filter((path) => FILES[path] === 'bounded')
  const tables = bounded.flatMap((path) => tablesIn(path, read(path)).map((table) => [path, table] as const))
  expect(tables.length).toBeGreaterThan(10)
  expect(tables.filter(([, table]) => !(table in BOUNDED))).toEqual([])
  expect(tablesIn('x.ts', 'db.prepare(`select 1 from delivery where exists (select 1 from "inbox")`)')).toEqual(['delivery', 'inbox'])
})

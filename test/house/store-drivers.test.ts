import { expect, test } from 'vitest'
import { parseModule, readModules, type SourceModule } from './source-module.ts'

const TESTS = new URL('../', import.meta.url).pathname

const DRIVERS = ['better-sqlite3', 'node:sqlite']

/** Tests look at a store through its verbs, or else through `storedRows`. What is about the file, its log or the disk may open it itself. */
const OPENS_STORES = [
  'support/stored-rows.ts',
  // The engine: its file, its log and its migrations.
  'store/sqlite/',
  // Holds the schema of the other engine to that of the file.
  'store/postgres/postgres-migrate.test.ts',
  // The disk, and what it does to the file.
  'faults/durability/',
  'support/simulated-disk.ts',
  // Loaded into a relay, to have its driver fail or be less durable.
  'support/failing-store.ts',
  'support/weaker-store.ts',
  // Asks which SQLite the driver brings.
  'house/versions.test.ts',
]

/** Where a module opens a store that it may not open: one line each, with its place. */
function openersOf(modules: readonly SourceModule[]): readonly string[] {
  return modules
    .filter(({ path }) => !OPENS_STORES.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place)))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ specifier }) => DRIVERS.includes(specifier ?? ''))
        .map(({ specifier, line }) => `${path}:${line} imports ${specifier}`),
    )
}

test('only tests about the file, the log or the disk open a store with its driver', () => {
  const modules = readModules(TESTS)
  expect(openersOf(modules)).toEqual([])
  for (const place of OPENS_STORES) expect([place, modules.some(({ path }) => path.startsWith(place))]).toEqual([place, true])
})

test('a test elsewhere that opens a store with its driver is found, a loaded one and a type too', () => {
  const planted = [
    parseModule('flow/x.test.ts', "import { test } from 'vitest'\nimport Database from 'better-sqlite3'\nnew Database(':memory:')"),
    parseModule('e2e/x.test.ts', "export const x = () => import('better-sqlite3')"),
    parseModule('support/x.ts', "import type { Statement } from 'better-sqlite3'\nexport type X = Statement"),
    parseModule('store/sqlite/x.test.ts', "import Database from 'better-sqlite3'\nnew Database(':memory:')"),
    parseModule('http/x.test.ts', 'const text = "import Database from \'better-sqlite3\'"'),
  ]
  expect(openersOf(planted)).toEqual([
    'flow/x.test.ts:2 imports better-sqlite3',
    'e2e/x.test.ts:1 imports better-sqlite3',
    'support/x.ts:1 imports better-sqlite3',
  ])
})

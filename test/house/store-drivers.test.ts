import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parseModule, readModules, type SourceModule } from './source-module.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const modules = ['src/', 'test/', 'bench/'].flatMap((folder) =>
  readModules(ROOT + folder).map((module) => ({ ...module, path: folder + module.path })),
)
const tests = modules.filter(({ path }) => path.startsWith('test/'))

const DRIVERS = ['better-sqlite3', 'node:sqlite']

/** Tests read a store through its verbs or through `storedRows`. Only these, which test the file, its WAL or the disk, may open it themselves. */
const OPENS_STORES = [
  'test/support/store/stored-rows.ts',
  // These test the engine: its file, its WAL and its migrations.
  'test/store/sqlite/',
  // This compares the schema of PostgreSQL with that of SQLite.
  'test/store/postgres/postgres-migrate.test.ts',
  // These test the disk and its effects on the file.
  'test/faults/durability/',
  'test/support/store/simulated-disk.ts',
  // This is loaded into a relay, to make its driver fail or write less durably.
  'test/support/store/failing-store.ts',
  'test/support/store/weaker-store.ts',
  // This competes with a relay for the lock of the file.
  'test/support/store/other-writer.ts',
  // This asks which SQLite the driver contains.
  'test/house/versions.test.ts',
]

/** The unit tests as in vitest.config.ts. One of them asks the driver for its version. */
const UNIT = /^test\/(?:domain|flow|house(?!\/versions))\/.*\.test\.ts$/

/** Returns a line for each place where a module opens a store without permission. */
function openersOf(all: readonly SourceModule[]): readonly string[] {
  return all
    .filter(({ path }) => !OPENS_STORES.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place)))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ specifier }) => DRIVERS.includes(specifier ?? ''))
        .map(({ specifier, line }) => `${path}:${line} imports ${specifier}`),
    )
}

/** Lists the tests whose imports lead to a store, each with the chain of imports. */
function reachStores(all: readonly SourceModule[]): readonly string[] {
  const byPath = new Map(all.map((module) => [module.path, module]))
  const wayFrom = (path: string, seen: Set<string>): string | null => {
    if (seen.has(path)) return null
    seen.add(path)
    for (const { specifier } of byPath.get(path)?.imports ?? []) {
      if (specifier === null) continue
      const target = posix.join(posix.dirname(path), specifier)
      const way = DRIVERS.includes(specifier) ? specifier : wayFrom(target, seen)
      if (way !== null) return `${path} -> ${way}`
    }
    return null
  }
  return all.filter(({ path }) => UNIT.test(path)).flatMap(({ path }) => wayFrom(path, new Set()) ?? [])
}

test('only tests about the file, the WAL or the disk open a store with its driver', () => {
  expect(openersOf(tests)).toEqual([])
  for (const place of OPENS_STORES) expect([place, tests.some(({ path }) => path.startsWith(place))]).toEqual([place, true])
})

test('other tests that open a store are found, even with a dynamic or a type import', () => {
  const planted = [
    parseModule('test/flow/x.test.ts', "import { test } from 'vitest'\nimport Database from 'better-sqlite3'\nnew Database(':memory:')"),
    parseModule('test/e2e/x.test.ts', "export const x = () => import('better-sqlite3')"),
    parseModule('test/support/x.ts', "import type { Statement } from 'better-sqlite3'\nexport type X = Statement"),
    parseModule('test/store/sqlite/x.test.ts', "import Database from 'better-sqlite3'\nnew Database(':memory:')"),
    parseModule('test/http/x.test.ts', 'const text = "import Database from \'better-sqlite3\'"'),
  ]
  expect(openersOf(planted)).toEqual([
    'test/flow/x.test.ts:2 imports better-sqlite3',
    'test/e2e/x.test.ts:1 imports better-sqlite3',
    'test/support/x.ts:1 imports better-sqlite3',
  ])
})

test('no unit test opens a store, whatever it imports', () => {
  expect(reachStores(modules)).toEqual([])
  const planted = parseModule('test/flow/x.test.ts', "import { openStore } from '../support/store/write-side.ts'\nawait openStore(0)")
  expect(reachStores([...modules, planted])).toEqual([
    expect.stringMatching(/^test\/flow\/x\.test\.ts -> test\/support\/store\/write-side\.ts -> .* -> better-sqlite3$/),
  ])
})

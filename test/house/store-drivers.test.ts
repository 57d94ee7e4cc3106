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

/** Tests look at a store through its verbs, or else through `storedRows`. What is about the file, its log or the disk may open it itself. */
const OPENS_STORES = [
  'test/support/store/stored-rows.ts',
  // The engine: its file, its log and its migrations.
  'test/store/sqlite/',
  // Holds the schema of the other engine to that of the file.
  'test/store/postgres/postgres-migrate.test.ts',
  // The disk, and what it does to the file.
  'test/faults/durability/',
  'test/support/store/simulated-disk.ts',
  // Loaded into a relay, to have its driver fail or be less durable.
  'test/support/store/failing-store.ts',
  'test/support/store/weaker-store.ts',
  // Competes with a relay for the lock of its file.
  'test/support/store/other-writer.ts',
  // Asks which SQLite the driver brings.
  'test/house/versions.test.ts',
]

/** As vitest.config.ts has them; one of them asks the driver for its version. */
const UNIT = /^test\/(?:domain|flow|house(?!\/versions))\/.*\.test\.ts$/

/** Where a module opens a store that it may not open: one line each, with its place. */
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

test('only tests about the file, the log or the disk open a store with its driver', () => {
  expect(openersOf(tests)).toEqual([])
  for (const place of OPENS_STORES) expect([place, tests.some(({ path }) => path.startsWith(place))]).toEqual([place, true])
})

test('a test elsewhere that opens a store with its driver is found, a loaded one and a type too', () => {
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

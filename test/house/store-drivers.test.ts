import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parseModule, readModules, type SourceModule } from './source-module.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const modules = ['src/', 'test/', 'bench/'].flatMap((folder) =>
  readModules(ROOT + folder).map((module) => ({ ...module, path: folder + module.path })),
)

const DRIVERS = ['better-sqlite3', 'node:sqlite']

/** Matches the unit tests, as in vitest.config.ts, except house/versions.test.ts, which opens the driver to ask for its version. */
const UNIT =
  /^test\/(?:core\/(?:domain|flow)|console\/problems|house(?!\/(?:configuration|versions)))\/(?!.*\.extended\.).*\.test\.ts$|^test\/.*\.rules\.test\.ts$/

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

test('no unit test imports a store, directly or through other modules', () => {
  expect(reachStores(modules)).toEqual([])
  const planted = parseModule(
    'test/core/flow/x.test.ts',
    "import { openStore } from '../../support/store/write-side.ts'\nawait openStore(0)",
  )
  expect(reachStores([...modules, planted])).toEqual([
    expect.stringMatching(/^test\/core\/flow\/x\.test\.ts -> test\/support\/store\/write-side\.ts -> .* -> better-sqlite3$/),
  ])
})

/** `existsSync` answers "no" to whatever fails, so a full or failing disk would pass for a missing file. */
const HIDING = /\bexistsSync\b|\b(?:stat|lstat|statfs)\([^()]*\)\s*\.catch\(\(\) =>/

test('no source takes every failure of a file operation for a missing file', () => {
  const hiding = globSync('src/**/*.ts', { cwd: ROOT }).filter((path) => HIDING.test(readFileSync(ROOT + path, 'utf8')))
  expect(hiding).toEqual([])
  expect(['if (existsSync(path))', 'await stat(path).catch(() => null)'].every((line) => HIDING.test(line))).toBe(true)
})

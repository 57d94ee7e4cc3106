import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { checkHouse } from './check-house.ts'
import { parseModule, readModules } from './source-module.ts'

const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url))

describe('the sources', () => {
  const modules = readModules(SOURCES)
  const report = checkHouse(modules)

  test('keep to the rules of the house', () => {
    console.info(`the house: read ${report.modules} modules and ${report.imports} imports`)
    expect(report.violations).toEqual([])
  })

  test('are read completely: every file, and every import that begins a line', () => {
    const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))
    expect(report.modules).toBe(files.length)
    const plain = files.flatMap((path) => readFileSync(join(SOURCES, path), 'utf8').match(/^(?:import .*|\} )from '[^']+'$/gm) ?? [])
    expect(plain.length).toBeGreaterThan(files.length)
    expect(report.imports).toBeGreaterThanOrEqual(plain.length)
  })
})

/** Sources that keep every rule. Each test plants one fault in them. */
const SOUND = {
  'main.ts': "import { serveCommand } from './console/cli/serve.ts'\nserveCommand()",
  'app.ts':
    "import { createServe } from './core/flow/serve.ts'\nimport { openStore } from './core/store/open.ts'\nexport const relay = [createServe, openStore]",
  'serving.ts': "export const relay = () => import('./successor.ts')",
  'successor.ts': "import { relay } from './app.ts'\nexport const next = relay",
  'core/config/config.ts': "import { readFileSync } from 'node:fs'\nexport const load = () => [process.env.RELAY, readFileSync]",
  'console/cli/serve.ts':
    "import { relay } from '../../serving.ts'\nimport type { x } from '../../core/http/status.routes.ts'\nexport const serveCommand = () => relay",
  'core/domain/history.ts':
    "import { createHash } from 'node:crypto'\nimport type { Entry } from './entry.ts'\nexport const derive = (e: Entry) => createHash(e)",
  'core/domain/entry.ts': 'export type Entry = string',
  'core/flow/ports.ts': "import type { Entry } from '../domain/entry.ts'\nexport interface Store { readonly entries: readonly Entry[] }",
  'core/flow/serve.ts':
    "import { findJob } from '../store/admin/jobs.ts'\nimport type { Store } from './ports.ts'\nexport const createServe = (store: Store) => [store, findJob]",
  'core/http/status.routes.ts':
    "import Router from '@koa/router'\nimport type { createServe } from '../flow/serve.ts'\nexport const x = Router",
  'core/store/open.ts': "import type { Entry } from '../domain/entry.ts'\nexport const openStore = (e: Entry) => e",
  'core/store/sqlite/sqlite.ts': "import Database from 'better-sqlite3'\nexport const open = Database",
  'upkeep/jobs/job.rules.ts': "import type { Entry } from '../../core/domain/entry.ts'\nexport type Job = Entry",
  'core/store/admin/jobs.ts': "import { sql } from 'kysely'\nexport const findJob = sql",
  'trial/sandbox/world.ts': "import { createServer } from 'node:http'\nexport const world = createServer",
}
function violationsOf(planted: Readonly<Record<string, string>>): readonly string[] {
  return checkHouse(Object.entries({ ...SOUND, ...planted }).map(([path, source]) => parseModule(path, source))).violations
}

describe('a planted fault is found', () => {
  test('sources without a fault pass', () => expect(violationsOf({})).toEqual([]))

  // Each row has a name, a path, the source to plant there, and the violation that must be found, without the path at its beginning.
  test.each([
    [
      'a room that imports another',
      'core/domain/x.ts',
      "import { x } from '../store/open.ts'",
      ':1: core/domain/ may not import core/store/open.ts',
    ],
    ['an import of types only', 'core/flow/x.ts', "import type { A } from '../../app.ts'", ':1: core/flow/ may not import app.ts'],
    [
      'a command that loads a schema',
      'console/cli/x.ts',
      "import { createServe, type x } from '../../core/http/status.routes.ts'",
      ':1: console/cli/ may not import core/http/status.routes.ts',
    ],
    ['an import in a type', 'core/http/x.ts', "export type B = import('../../app.ts').A", ':1: core/http/ may not import app.ts'],
    [
      'an import at run time',
      'core/flow/x.ts',
      "\nexport const x = () => import('../store/open.ts')",
      ':2: core/flow/ may not import core/store/open.ts',
    ],
    [
      'an engine in a flow',
      'core/flow/x.ts',
      "import '../store/sqlite/sqlite.ts'",
      ':1: core/flow/ may not import core/store/sqlite/sqlite.ts',
    ],
    ['SQL outside the store', 'core/flow/x.ts', "import { sql } from 'kysely'", ':1: core/flow/ may not use the library kysely'],
    [
      'an import for its effects',
      'core/carrier/x.ts',
      "import '../../console/cli/serve.ts'",
      ':1: core/ may not import console/cli/serve.ts',
    ],
    [
      'an import over several lines',
      'core/store/x.ts',
      "import {\n  x,\n} from '../flow/serve.ts'",
      ':1: core/store/ may not import core/flow/serve.ts',
    ],
    [
      'a module of core/runtime/ that imports a rule of the domain',
      'core/runtime/x.ts',
      "import type { E } from '../domain/entry.ts'",
      ':1: core/runtime/ may not import core/domain/entry.ts',
    ],
    [
      'an import of the relay in the sandbox',
      'trial/sandbox/x.ts',
      "import type { E } from '../../core/domain/entry.ts'",
      ':1: trial/sandbox/ may not import core/domain/entry.ts',
    ],
    [
      'a wing in the core',
      'core/flow/x.ts',
      "import '../../upkeep/jobs/job.rules.ts'",
      ':1: core/ may not import upkeep/jobs/job.rules.ts',
    ],
    [
      'a wing that needs this one',
      'console/cli/x.ts',
      "import '../../upkeep/jobs/job.rules.ts'",
      ':1: console/ may not import upkeep/jobs/job.rules.ts',
    ],
    ['I/O in the rules of a wing', 'upkeep/jobs/x.rules.ts', "import 'node:fs'", ':1: *.rules.ts may not use node:fs'],
    ['SQL outside the rows of a wing', 'upkeep/jobs/x.tx.ts', "import 'kysely'", ':1: *.tx.ts may not use the library kysely'],
    ['a library in the sandbox', 'trial/sandbox/x.ts', "import x from 'koa'", ':1: trial/sandbox/ may not use the library koa'],
    [
      'an import of the sandbox',
      'app.ts',
      "import { x } from './trial/sandbox/world.ts'",
      ':1: app.ts may not import trial/sandbox/world.ts',
    ],
    ['a library in the wrong room', 'core/flow/x.ts', "import x from 'p-retry'", ':1: core/flow/ may not use the library p-retry'],
    [
      'a subpath of a wrong library',
      'core/http/x.ts',
      "import { x } from 'kysely/migration'",
      ':1: core/http/ may not use the library kysely',
    ],
    [
      'a scoped library in the wrong room',
      'core/store/x.ts',
      "import x from '@koa/router'",
      ':1: core/store/ may not use the library @koa/router',
    ],
    [
      'a driver outside its engine',
      'core/store/x.ts',
      "import type { D } from 'better-sqlite3'",
      ':1: core/store/ may not use the library better-sqlite3',
    ],
    ['files in a room that may not read them', 'app.ts', "import { x } from 'node:fs'", ':1: app.ts may not use node:fs'],
    ['files without "node:"', 'core/http/x.ts', "import { x } from 'fs/promises'", ':1: core/http/ may not use fs/promises'],
    ['I/O in the domain', 'core/domain/x.ts', "import { x } from 'node:http'", ':1: core/domain/ may not use node:http'],
    ['the environment', 'core/http/x.ts', 'export const x = process.env.HOME', ':1: reads the environment: only core/config/ may'],
    [
      'the environment in brackets',
      'core/ops/log.ts',
      "export const x = process['env']",
      ':1: reads the environment: only core/config/ may',
    ],
    ['the environment, destructured', 'console/cli/x.ts', 'const { env } = process', ':1: reads the environment: only core/config/ may'],
    ['the environment as a module', 'console/cli/x.ts', "import { x } from 'node:process'", ':1: console/cli/ may not use node:process'],
    [
      'a clock in the domain',
      'core/domain/x.ts',
      'export const x = () => Date.now()',
      ':1: reads a clock or random values, which must be passed in',
    ],
    [
      'a random value in a flow',
      'core/flow/x.ts',
      'export const x = () => Math.random()',
      ':1: reads a clock or random values, which must be passed in',
    ],
    ['a barrel', 'core/domain/all.ts', "export * from './history.ts'", ':1: re-exports from another module'],
    ['a barrel of types', 'core/domain/all.ts', "export type { Entry } from './entry.ts'", ':1: re-exports from another module'],
    ['a barrel in two steps', 'core/domain/all.ts', "import { E } from './entry.ts'\nexport { E }", ':1: re-exports from another module'],
    [
      'types in two steps',
      'core/domain/all.ts',
      "import type { E } from './entry.ts'\nexport type { E }",
      ':1: re-exports from another module',
    ],
    ['a file name that says nothing', 'core/domain/utils.ts', 'export const x = 1', ': "utils" does not say what is inside'],
    ['a folder name that says nothing', 'core/http/helpers/x.ts', 'export const x = 1', ': "helpers" does not say what is inside'],
    ['a file in no room', 'extra.ts', 'export const x = 1', ': belongs to no room'],
    ['a folder that is no room', 'jobs/x.ts', 'export const x = 1', ': belongs to no room'],
    ['an import of nothing', 'core/domain/x.ts', "import { y } from './y.ts'", ':1: imports ./y.ts, which is no module'],
    ['an import without its ending', 'core/domain/x.ts', "import { x } from './history'", ':1: imports ./history, which is no module'],
    [
      'an import from outside the sources',
      'core/flow/x.ts',
      "import { y } from '../../../test/y.ts'",
      ':1: imports ../../../test/y.ts, which is no module',
    ],
    [
      'an import under a computed name',
      'app.ts',
      "export const relay = (name: string) => import(name + '.ts')",
      ':1: imports a computed name',
    ],
    ['a source that cannot be parsed', 'core/domain/x.ts', 'export const = 1', ':1: cannot be read as a module'],
  ])('%s', (_name, path, source, violation) => {
    expect(violationsOf({ [path]: source })).toEqual([path + violation])
  })

  test('code that only looks like a fault passes', () => {
    const innocent = {
      'core/domain/x.ts': "// import '../store/open.ts'\nexport const x = \"import y from 'koa'\"",
      'core/runtime/x.ts': 'export const x = () => Date.now()',
    }
    expect(violationsOf(innocent)).toEqual([])
  })
})

describe('a check of the sources', () => {
  test('that finds no modules or no imports is a violation', () => {
    expect(checkHouse(readModules(temporaryFolder()))).toEqual({
      modules: 0,
      imports: 0,
      violations: ['read 0 modules and 0 imports: nothing was checked'],
    })
    expect(checkHouse([parseModule('core/domain/x.ts', 'export const x = 1')]).violations).toEqual([
      'read 1 modules and 0 imports: nothing was checked',
    ])
  })

  test('finds a fault that is deep inside a folder', () => {
    const folder = temporaryFolder()
    const file = join(folder, 'core', 'http', 'x.page.tsx')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, "import { db } from '../store/open.ts'\nexport const x = <p>{db}</p>")
    mkdirSync(join(folder, 'core', 'store'))
    writeFileSync(join(folder, 'core', 'store', 'open.ts'), 'export const db = 1')
    expect(checkHouse(readModules(folder))).toEqual({
      modules: 2,
      imports: 1,
      violations: ['core/http/x.page.tsx:1: core/http/ may not import core/store/open.ts'],
    })
  })
})

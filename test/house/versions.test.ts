import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'

/** Tells whether a version is at least another, number by number. */
function isAtLeast(version: string, floor: string): boolean {
  const [actual, least] = [version, floor].map((text) => text.split('.').map(Number))
  for (let at = 0; at < 3; at++) {
    const difference = (actual?.[at] ?? 0) - (least?.[at] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return true
}

/** Reads the version of the installed package, because package.json only requires a range. */
function installed(name: string): string {
  return versionIn(fileURLToPath(new URL(`../../node_modules/${name}/package.json`, import.meta.url)))
}

function versionIn(manifest: string): string {
  const read: unknown = JSON.parse(readFileSync(manifest, 'utf8'))
  if (typeof read !== 'object' || read === null || !('version' in read)) throw new Error(`${manifest} has no version`)
  return String(read.version)
}

/** Reads the version of the package that an import with this name loads. */
function loaded(name: string): string {
  const file = fileURLToPath(import.meta.resolve(name))
  const folder = file.slice(0, file.lastIndexOf(`/node_modules/${name}/`) + `/node_modules/${name}`.length)
  return versionIn(`${folder}/package.json`)
}

function sqlite(): string {
  const db = new Database(':memory:')
  try {
    return db.prepare<[], { readonly version: string }>('select sqlite_version() as version').get()?.version ?? ''
  } finally {
    db.close()
  }
}

test.each([
  ['Node', process.versions.node, '24.18.0'],
  ['koa', installed('koa'), '3.1.2'],
  ['undici', loaded('undici'), '8.13.1'],
  ['jose', loaded('jose'), '6.2.18'],
  // Older versions of depd evaluate text as code.
  ['depd', installed('depd'), '2.0.0'],
  ['SQLite', sqlite(), '3.51.3'],
])('X8: %s %s is at least %s', (_name, version, floor) => {
  expect(isAtLeast(version, floor)).toBe(true)
})

test('X8: SQLite is not 3.52.0, which can corrupt a file', () => expect(sqlite()).not.toBe('3.52.0'))

test('the installed version of undici, jose and http-errors is the one that imports load', () => {
  expect(['undici', 'jose', 'http-errors'].filter((name) => loaded(name) !== installed(name))).toEqual([])
  expect(existsSync('node_modules/http-assert/node_modules/http-errors')).toBe(false)
})

test('versions are compared by their numbers', () => {
  expect([isAtLeast('3.1.2', '3.1.2'), isAtLeast('3.10.0', '3.9.9'), isAtLeast('24.18.0', '24.18.1')]).toEqual([true, true, false])
})

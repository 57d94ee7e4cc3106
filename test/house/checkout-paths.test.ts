import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FOLDERS = ['src', 'test', 'bench']
/** The path of a URL is escaped, so a checkout whose folder has a space in its name would not be found. */
const ESCAPED = /import\.meta\.url\)\.pathname/

test('no path in the checkout is made from the escaped path of a URL', () => {
  const paths = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  ).filter((path) => path.endsWith('.ts'))
  expect(paths.length).toBeGreaterThan(500)
  expect(paths.filter((path) => ESCAPED.test(readFileSync(join(ROOT, path), 'utf8')))).toEqual([])
  expect(ESCAPED.test("new URL('../', import" + '.meta.url).pathname')).toBe(true)
})

import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const room = new URL('../../../src/trial/sandbox/', import.meta.url)

/** Lists the imports of a source that come neither from its own folder nor from Node.js. */
function strangers(source: string): readonly string[] {
  const imported = [...source.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, name = '']) => name)
  return imported.filter((name) => !name.startsWith('node:') && !/^\.\/[a-z-]+\.ts$/.test(name))
}

test('the sandbox imports only its own files and modules of Node.js', () => {
  const files = readdirSync(room)
  expect(files.length).toBeGreaterThan(5)
  for (const file of files) expect([file, strangers(readFileSync(new URL(file, room), 'utf8'))]).toEqual([file, []])
})

test('the check notices an import from outside', () => {
  const planted =
    "import type { Entry } from '../domain/history.ts'\nimport '../log.ts'\nconst x = await import('koa')\nimport { a } from './a.ts'"
  expect(strangers(planted)).toEqual(['../domain/history.ts', '../log.ts', 'koa'])
})

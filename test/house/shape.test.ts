import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { readModules } from './source-module.ts'

// The linter limits the length of functions and files (.oxlintrc.json).

const CAPABILITIES = ['ingest', 'history', 'polling', 'delivery', 'admin']

test('flows of one capability import none of another', () => {
  const crossings = readModules('src/core/flow').flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier }) => {
      const target = specifier?.startsWith('.') ? posix.join(posix.dirname(path), specifier) : ''
      const [from = '', to = ''] = [path.split('/')[0], target.split('/')[0]]
      return from !== to && CAPABILITIES.includes(from) && CAPABILITIES.includes(to) ? [`${path} -> ${target}`] : []
    }),
  )
  expect(crossings).toEqual([])
})

const FILES_MAX = 20

test.each(['push', 'read', 'poll', 'delivery', 'portal page'])('the walk of a %s names at most 20 files, and each exists', (what) => {
  const [, walk = ''] = new RegExp(`^### A ${what}\n((?:.|\n)*?)(?=\n##)`, 'm').exec(readFileSync('docs/architecture.md', 'utf8')) ?? []
  const paths = globSync('src/**/*.ts')
  const named = [...walk.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  expect(named.filter((name) => !paths.some((path) => path.endsWith(`/${name}.ts`)))).toEqual([])
  expect(new Set(named).size).toBeGreaterThan(5)
  expect(new Set(named).size).toBeLessThanOrEqual(FILES_MAX)
})

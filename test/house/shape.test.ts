import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'
import { readModules } from './source-module.ts'

// The linter limits the length of functions and files (.oxlintrc.json).

const CAPABILITIES = ['ingest', 'history', 'polling', 'delivery', 'admin']
/** The imports between flows of different capabilities, each with its reason. */
const CROSSINGS = [
  // A push that is reprocessed from the inbox is recorded like one that has just arrived.
  'admin/inbox/reprocess.tx.ts -> history/record.tx.ts',
]

test('flows of one capability import those of another only if the import is listed', () => {
  const crossings = readModules('src/core/flow').flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier }) => {
      const target = specifier?.startsWith('.') ? posix.join(posix.dirname(path), specifier) : ''
      const [from = '', to = ''] = [path.split('/')[0], target.split('/')[0]]
      return from !== to && CAPABILITIES.includes(from) && CAPABILITIES.includes(to) ? [`${path} -> ${target}`] : []
    }),
  )
  expect(crossings.toSorted()).toEqual(CROSSINGS)
})

test('docs/architecture.md lists at most 34 files that a push passes, and each exists', () => {
  const [paragraph = ''] =
    readFileSync('docs/architecture.md', 'utf8').match(/^A push passes these files before its 200(?:.|\n)*?(?=\n\n)/m) ?? []
  const listed = [...paragraph.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  const paths = globSync('src/**/*.ts')
  expect(listed.length).toBeGreaterThan(10)
  expect(listed.length).toBeLessThanOrEqual(34)
  expect(listed.filter((name) => !paths.some((path) => path.endsWith(`/${name}.ts`)))).toEqual([])
})

/** Returns the titles of tests in a source, without interpolated values. */
function titlesIn(path: string, source: string): readonly string[] {
  const titles: string[] = []
  new Visitor({
    CallExpression({ callee, arguments: [title] }) {
      if (!/^(?:test|it|onlyLong\(|testWith\()/.test(source.slice(callee.start, callee.end)) || title === undefined) return
      if (title.type === 'Literal' && typeof title.value === 'string') titles.push(title.value)
      if (title.type === 'TemplateLiteral') titles.push(title.quasis.map(({ value }) => value.raw).join(''))
    },
  }).visit(parseSync(path, source).program)
  return titles
}

test('a test title has at most 90 characters', () => {
  const titles = globSync('test/**/*.test.ts').flatMap((path) => titlesIn(path, readFileSync(path, 'utf8')))
  expect(titles.length).toBeGreaterThan(1500)
  expect(titles.filter((title) => title.length > 90)).toEqual([])
  expect(titlesIn('x.ts', `test.each([1])("a %i", () => {})\nonlyLong(test)("b", () => {})`)).toEqual(['a %i', 'b'])
})

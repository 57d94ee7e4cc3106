import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const readme = readFileSync('README.md', 'utf8')
const documents = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/NOTES.md', ...documents.map((name) => `docs/${name}`)]
const prose = pages.map((page) => readFileSync(page, 'utf8')).join('\n')
const named = (pattern: RegExp) => [...new Set([...prose.matchAll(pattern)].map(([, name = '']) => name))]

test('the pictures of the README are in the package', () => {
  const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(manifest).toMatchObject({ files: expect.arrayContaining(['docs/images']) })
  const pictures = [...readme.matchAll(/^!\[.+\]\((docs\/images\/.*)\)$/gm)].map(([, path = '']) => path)
  expect(pictures.map((path) => path.slice('docs/images/'.length)).toSorted()).toEqual(readdirSync('docs/images').toSorted())
})

test.each(pages)('every link within the project in %s leads to an existing file and heading', (page) => {
  const targets = [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)]
  const broken = targets.filter(([, path = '', heading]) => {
    const file = path === '' ? page : join(dirname(page), path)
    return !existsSync(file) || (heading !== undefined && !anchorsOf(file).includes(heading))
  })
  expect(broken.map(([link]) => link)).toEqual([])
})

test('every file and folder that the README and the documents name exists', () => {
  const paths = named(/`((?:src|test|config|bench|docs)\/[^`\s*]*|\.ci\/[^`\s]*)`/g).filter((path) => path !== 'config/relay.yaml')
  expect(paths.length).toBeGreaterThan(30)
  expect(paths.filter((path) => !existsSync(path))).toEqual([])
})

test('every metric that the README and the documents name exists', () => {
  const files = ['src/core/ops/metrics.ts', 'src/core/ops/counters.ts', ...globSync('src/**/*.metrics.ts')]
  const source = files.map((file) => readFileSync(file, 'utf8')).join()
  const metrics = named(/\b(relay_[a-z_]+)\b/g)
  expect(metrics.length).toBeGreaterThan(10)
  expect(metrics.filter((metric) => !source.includes(`'${metric}'`))).toEqual([])
})

test('every script that the README and the documents run is in package.json', () => {
  const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const script of named(/npm run (?:-s )?([a-z:]+)/g)) expect(manifest).toHaveProperty(['scripts', script])
})

/** Returns the anchors that the repository's host makes from headings: lower case, no punctuation, a hyphen for each blank. */
function anchorsOf(file: string): readonly string[] {
  const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)
  return [...headings].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { loadMarkdown, MANUAL, PICTURES, RUNBOOKS } from '../../../src/console/portal/docs/manual.ts'
import { askDocs } from '../../support/portal/docs-page.ts'
import { CONCERNS } from '../../support/relay/routes.ts'

const idsOf = (page: string) => [...page.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)
const linksOf = (page: string) => [...page.matchAll(/ href="([^"]+)"/g)].map(([, href = '']) => href)

test('the manual has every page of docs/ and every picture', () => {
  expect(MANUAL.map(([name]) => `${name}.md`).toSorted()).toEqual(
    globSync('docs/*.md')
      .map((path) => basename(path))
      .toSorted(),
  )
  expect(PICTURES).toEqual(globSync('docs/*.svg').map((path) => basename(path)))
})

test('every link between the pages leads to an existing page and heading', async () => {
  const names = ['', ...MANUAL.map(([name]) => name)]
  const pages = new Map<string, string>()
  for (const name of names) pages.set(name === '' ? '/docs' : `/docs/${name}`, await askDocs(name))
  const lost = [...pages].flatMap(([from, page]) =>
    linksOf(page).filter((href) => {
      if (!href.startsWith('/docs') && !href.startsWith('#')) return false
      const [path = '', anchor] = href.startsWith('#') ? [from, href.slice(1)] : href.split('#')
      const target = pages.get(path)
      return target === undefined || (anchor !== undefined && !idsOf(target).includes(decodeURIComponent(anchor)))
    }),
  )
  expect(lost).toEqual([])
  const all = [...pages.values()].flatMap(idsOf)
  expect(all.length).toBeGreaterThan(200)
})

test('a page has each id only once', async () => {
  for (const [name] of [[''], ...MANUAL]) {
    const ids = idsOf(await askDocs(name ?? '')).filter((id) => !id.startsWith('i-'))
    expect([name, ids.filter((id, at) => ids.indexOf(id) !== at)]).toEqual([name, []])
  }
})

test('every problem of the overview has a runbook that exists', async () => {
  const ids = idsOf(await askDocs('runbooks'))
  const runbooks = [...Object.values(RUNBOOKS), ...Array.from(CONCERNS.known.values(), ({ runbook }) => runbook)]
  expect(runbooks.filter(([heading]) => !ids.includes(heading))).toEqual([])
})

test('markup in the manual is shown as text, and a link that leads outside becomes plain text', async () => {
  const md = await loadMarkdown()
  const page = md.page('# A <b>\n\n<script>x</script> [here](../src/main.ts) [x](javascript:1) ![p](p.svg "t")', () => null)
  expect(page).not.toMatch(/<script|<b>|href|javascript:[^)]*"/)
  expect(page).toContain('&lt;script&gt;')
  expect(page).toContain('<span>here</span>')
})

test.each(['../package.json', '..%2Fpackage.json', 'operating.md', 'openapi.json', 'decisions', '__proto__', 'constructor'])(
  'no other file is served as a page of the manual: %s',
  async (name) => {
    expect(await askDocs(name)).toBe('not_found')
  },
)

test('with a public URL the commands use it, and the Host header is ignored', async () => {
  const body = await askDocs('', { publicOrigin: 'https://ops.example', prefix: '/relay' })
  expect(body).toContain('RELAY=&#39;https://ops.example/relay&#39;')
  expect(linksOf(body)).toContain('/relay/docs/operating')
  const shown = await askDocs('')
  expect(shown.slice(shown.indexOf('<main'))).not.toContain('evil.example')
})

test('the page /docs lists every route of the API', async () => {
  const body = await askDocs('')
  const document: { paths: Record<string, Record<string, unknown>> } = JSON.parse(readFileSync('docs/openapi.json', 'utf8'))
  const named = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  for (const name of named) expect(body).toContain(`<code>${name}</code></h3>`)
})

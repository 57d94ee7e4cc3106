import { existsSync, globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const PAGES = ['README.md', ...globSync('docs/**/*.md')]

/** Paths of the project, and pages linked to, that a text names and that do not exist. */
function absent(page: string, text: string): readonly string[] {
  const named = [...text.matchAll(/`((?:src|test|bench|docs|config)\/[\w./-]+?\.(?:tsx?|md|ya?ml|json))`/g)].map(([, path = '']) => path)
  const linked = [...text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)].map(([, path = '']) => new URL(path, `file:///${page}`).pathname.slice(1))
  return [...named, ...linked].filter((path) => !existsSync(path) && path !== 'config/relay.yaml').map((path) => `${page}: ${path}`)
}

test('every file that a page names or links to exists', () => {
  expect(PAGES.flatMap((page) => absent(page, readFileSync(page, 'utf8')))).toEqual([])
})

test('one that does not is seen', () => {
  expect(absent('docs/x.md', 'see `src/gone.ts` and [there](gone.md), but `src/main.ts` and [here](feed.md)')).toEqual([
    'docs/x.md: src/gone.ts',
    'docs/x.md: docs/gone.md',
  ])
})

test('the README is read in ten minutes: 1,500 words at most', () => {
  expect(readFileSync('README.md', 'utf8').split(/\s+/).length).toBeLessThanOrEqual(1500)
})

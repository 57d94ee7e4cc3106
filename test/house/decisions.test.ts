import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'

const FOLDER = 'docs/decisions'
const pages = readdirSync(FOLDER).sort()

test('decisions are numbered without gaps, and each has a context, decision and consequence', () => {
  expect(pages.map((page) => page.slice(0, 5))).toEqual(pages.map((_, at) => `${String(at + 1).padStart(4, '0')}-`))
  for (const page of pages) {
    const headings = readFileSync(`${FOLDER}/${page}`, 'utf8').match(/^##? .*$/gm) ?? []
    expect([page, headings[0]?.slice(0, 7), headings]).toEqual([
      page,
      `# ${page.slice(0, 4)} `,
      expect.arrayContaining(['## Context', '## Decision', '## Consequence']),
    ])
  }
})

test('every dependency has a written reason, and every reason its dependency', () => {
  const group = z.record(z.string(), z.string())
  const manifest = z.object({ dependencies: group, devDependencies: group }).parse(JSON.parse(readFileSync('package.json', 'utf8')))
  const rows = readFileSync(`${FOLDER}/0005-dependencies.md`, 'utf8').match(/^\| `[^|]*/gm) ?? []
  const explained = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
  expect(explained.toSorted()).toEqual([...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)].sort())
})

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { presentReference } from '../../src/console/cli/config.command.ts'
import { presentApiDocument } from '../../src/console/document/openapi.ts'
import { VERSION } from '../../src/package-files.ts'
import { stampOfTypes } from '../core/http/api-types.ts'
import { SECTIONS } from '../support/relay/load-config.ts'
import { CAPABILITIES, OPERATOR_EVENTS } from '../support/relay/routes.ts'

const page = readFileSync('docs/configuration.md', 'utf8')

test('docs/configuration.md is what `npm run docs` makes from the settings', () => expect(page).toBe(presentReference(SECTIONS)))

test('docs/openapi.d.ts is made from docs/openapi.json (`npm run docs:types`)', () => {
  expect(readFileSync('docs/openapi.d.ts', 'utf8').trimEnd().split('\n').at(-1)).toBe(stampOfTypes())
})

test('docs/openapi.json is what `npm run docs` makes from the table of routes', () => {
  expect(readFileSync('docs/openapi.json', 'utf8')).toBe(
    presentApiDocument({ version: VERSION, capabilities: CAPABILITIES, events: OPERATOR_EVENTS }),
  )
})

test('docs/configuration.md gives every setting a type and a meaning', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('| `'))
  const cells = rows.map((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim()))
  expect(rows.length).toBeGreaterThan(60)
  expect(cells.filter(([, key, type, , meaning]) => key === '' || type === '' || meaning === '')).toEqual([])
})

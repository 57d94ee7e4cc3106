import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { citedIn, documentedRows, excusedRows, rulesOf } from './cited-ids.ts'

const rows = documentedRows(readFileSync('docs/faults.md', 'utf8'))
const excused = excusedRows(readFileSync('docs/faults.md', 'utf8'))
const rules = rulesOf(readFileSync('docs/domain.md', 'utf8'))
const known = new Set([...rows, ...rules])
const tests = globSync('test/**/*.test.ts', { exclude: ['test/house/cited-ids.test.ts'] }).map((path) =>
  citedIn(readFileSync(path, 'utf8'), path),
)
const ofNpmTest = new Set(
  tests
    .flat()
    .filter(({ path }) => !path.startsWith('test/stress/') && !/\.(extended|long)\.test\.ts$/.test(path))
    .map(({ id }) => id),
)
const sources = globSync('{src,bench}/**/*.ts').map((path) => citedIn(readFileSync(path, 'utf8'), path))
const cited = new Set(tests.flat().map(({ id }) => id))

test('docs/faults.md has over 150 rows, each id once, and docs/domain.md over 30 rules', () => {
  expect(rows.length).toBeGreaterThan(150)
  expect(rules.length).toBeGreaterThan(30)
  expect(new Set(rows).size).toBe(rows.length)
})

test('every row and rule that a title or a comment cites is documented', () => {
  const unknown = [...tests, ...sources].flat().filter(({ id }) => !known.has(id))
  expect(unknown.map(({ id, path }) => `${path}: ${id}`)).toEqual([])
})

test('every rule of the domain is cited by a test', () => expect(rules.filter((id) => !cited.has(id))).toEqual([]))

test('every row of docs/faults.md is either cited by a test or says why it has none', () => {
  expect(rows.filter((id) => !cited.has(id) && !excused.has(id))).toEqual([])
  expect([...excused].filter((id) => cited.has(id) || !rows.includes(id))).toEqual([])
})

test('npm test runs at least one test of every row and rule that any test cites', () => {
  expect([...rows, ...rules].filter((id) => cited.has(id) && !ofNpmTest.has(id))).toEqual([])
})

test('citations are found in titles and comments, and similar text is not a citation', () => {
  const source = `
    // Nothing is removed (DOMAIN 2.8 and 9.9).
    test('I5, I6: refused', () => {})
    test.each(['A1'])('4.3: %s', () => {})
    test(\`P12: \${parcels} parcels\`, () => {})
    test('jitter of 0.2 spreads: a wait', () => {})
    test('H1 declared', () => {})
  `
  expect(citedIn(source, 'x.ts').map(({ id }) => id)).toEqual(['I5', 'I6', '4.3', 'P12', '2.8', '9.9'])
  expect(documentedRows('| I1 | a | b |\n## Rows without a test\n| I1 | why |')).toEqual(['I1'])
  expect(excusedRows('| I1 | a | b |\n## Rows without a test\n| I2 | why |')).toEqual(new Set(['I2']))
  expect(rulesOf('**1.1** Text, see **bold**.\n**1.2** More.')).toEqual(['1.1', '1.2'])
})

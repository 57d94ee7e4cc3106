import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { CROSSINGS, HOUSE_LIMITS, holdToLimits } from './house-limits.ts'
import { functionsOf, type HouseFigures, listedPushPath, measureHouse } from './measure-house.ts'

const figures = measureHouse(fileURLToPath(new URL('../../', import.meta.url)))

test('the house keeps to its limits', () => {
  expect(figures.functions.length).toBeGreaterThan(2000)
  expect(holdToLimits(figures).filter(({ value, limit }) => value > limit)).toEqual([])
})

test('flows of one capability import those of another only where it is named', () => {
  expect(figures.crossings.toSorted()).toEqual(CROSSINGS)
})

test('every file on the way of a push is one', () => {
  expect(figures.pushPath.length).toBeGreaterThan(10)
  expect(figures.pushPathUnknown).toEqual([])
})

const lines = (count: number) => Array.from({ length: count }, (_, at) => `  call(${at})`).join('\n')

test.each([
  ['a function', `export function f() {\n${lines(10)}\n}`],
  ['an arrow function', `export const f = () => {\n${lines(10)}\n}`],
  ['a method', `export const o = { f() {\n${lines(10)}\n} }`],
])('%s is measured from its first line to its last', (_, source) => {
  expect(functionsOf('x.ts', source)).toEqual([{ size: 12, place: 'x.ts:1' }])
})

test('a function without a body is none', () => {
  expect(functionsOf('x.ts', 'export declare function f(): void')).toEqual([])
})

const planted: readonly [name: string, change: Partial<HouseFigures>][] = [
  [
    'lines of the longest function',
    { functions: [{ size: HOUSE_LIMITS.functionLines + 1, place: 'x.ts:1' }, ...figures.functions.slice(1)] },
  ],
  [
    'share of functions over 60 lines',
    {
      functions: [
        { size: 61, place: 'x.ts:1' },
        { size: 1, place: 'x.ts:99' },
      ],
    },
  ],
  ['lines of the largest file', { files: [{ size: HOUSE_LIMITS.fileLines + 1, place: 'x.ts' }, ...figures.files] }],
  ['lines of the largest ports of a capability', { ports: [{ size: HOUSE_LIMITS.portsLines + 1, place: 'flow/x/ports.ts' }] }],
  ['lines of the shared ports', { ports: [{ size: HOUSE_LIMITS.sharedPortsLines + 1, place: 'flow/ports.ts' }] }],
  ['lines of app.ts', { files: [{ size: HOUSE_LIMITS.appLines + 1, place: 'app.ts' }] }],
  ['imports between capabilities in flow/', { crossings: Array.from({ length: HOUSE_LIMITS.crossings + 1 }, () => 'a -> b') }],
  ['files a push passes', { pushPath: Array.from({ length: HOUSE_LIMITS.pushPathFiles + 1 }, () => 'x') }],
  ['words of the README', { readmeWords: HOUSE_LIMITS.readmeWords + 1 }],
]

test.each(planted)('too many: %s', (name, change) => {
  const broken = holdToLimits({ ...figures, ...change }).filter(({ value, limit }) => value > limit)
  expect(broken.map((one) => one.name)).toEqual([name])
})

test('each limit has its planted fault', () => {
  expect(planted.map(([name]) => name)).toEqual(holdToLimits(figures).map(({ name }) => name))
})

test('the way of a push is read from its paragraph alone', () => {
  const page = '`no`\n\nFiles it passes before its 200, in order: `a`,\n`b`. Then `c/d`.\n\nand `not-this`'
  expect(listedPushPath(page)).toEqual(['a', 'b', 'c/d'])
})

import { expect, test } from 'vitest'
import { addMisdirected, type MisdirectedPath } from '../../../../src/core/domain/ingest/refused-spells.ts'

const NONE: readonly MisdirectedPath[] = []
const signed = (target: string) => ({ target, isSigned: true })
const unsigned = (target: string) => ({ target, isSigned: false })

test('requests to a wrong path are counted with their first and last time, the last path first', () => {
  const seen = [signed('/webhook/status'), unsigned('/login'), signed('/webhook/status')].reduce(
    (known, request, at) => addMisdirected(known, request, at),
    NONE,
  )
  expect(seen).toEqual([
    { path: '/webhook/status', isSigned: true, count: 2, firstAtMs: 0, lastAtMs: 2 },
    { path: '/login', isSigned: false, count: 1, firstAtMs: 1, lastAtMs: 1 },
  ])
})

test('ten paths are kept, and a flood of other paths does not push out a path of signed requests', () => {
  let seen = addMisdirected(NONE, signed('/webhook/status'), 0)
  for (let at = 1; at < 1000; at++) seen = addMisdirected(seen, unsigned(`/scan/${at}`), at)
  expect(seen).toHaveLength(10)
  expect(seen.at(-1)?.path).toBe('/webhook/status')
  expect(seen[0]?.path).toBe('/scan/999')
})

test('a path that was posted to often outlives a flood of signed requests to other paths', () => {
  let seen = [1, 2].reduce((known, at) => addMisdirected(known, signed('/webhook/status'), at), NONE)
  for (let at = 3; at < 100; at++) seen = addMisdirected(seen, signed(`/made-up/${at}`), at)
  expect(seen.some(({ path }) => path === '/webhook/status')).toBe(true)
})

test.each([
  ['/webhook/status?token=secret', '/webhook/status'],
  ['/a\u001b[31m\u00e9', '/a?[31m?'],
  [`/${'x'.repeat(5000)}`, `/${'x'.repeat(96)}...`],
])('the path of %j is kept without query, control characters or great length', (target, path) => {
  expect(addMisdirected(NONE, signed(target), 0)[0]?.path).toBe(path)
})

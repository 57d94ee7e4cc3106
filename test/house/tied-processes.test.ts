import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const TESTS = fileURLToPath(new URL('../', import.meta.url))
/** Matches calls that start a process and return while it runs. */
const STARTS = /(?<![.\w])(?:spawn|fork)\(/g
const IS_TIED = /tieToTest\(\s*$/

/** Lists the lines of a file that start a process which may outlive its test. */
function loose(path: string, text: string): readonly string[] {
  if (!text.includes("'node:child_process'")) return []
  return [...text.matchAll(STARTS)]
    .filter(({ index }) => !IS_TIED.test(text.slice(0, index)))
    .map(({ index }) => `${path}:${text.slice(0, index).split('\n').length} starts a process without tieToTest`)
}

test('a test ties each process it starts to itself, so that none outlives it', () => {
  // The process that tied-process.ts starts ends all others, so it is not tied itself.
  const paths = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && path !== 'support/runner/tied-process.ts' && !path.startsWith('house/'),
  )
  expect(paths.length).toBeGreaterThan(300)
  expect(paths.flatMap((path) => loose(`test/${path}`, readFileSync(TESTS + path, 'utf8')))).toEqual([])
})

test('a process that is not tied is found, with its file and line', () => {
  expect(
    loose(
      'a.ts',
      `import { spawn } from 'node:child_process'\nconst one = tieToTest(\n  spawn(x))\nconst two = spawn(y)\nrelay.spawn(z)\nfork(z)`,
    ),
  ).toEqual(['a.ts:4 starts a process without tieToTest', 'a.ts:6 starts a process without tieToTest'])
})

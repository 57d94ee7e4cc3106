import { spawnSync } from 'node:child_process'
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/runner/temporary.ts'

const RUN = '.ci/run'

/** Runs `.ci/summary.mjs` on the report and exit code of each run. Returns its output and exit code. */
function summaryOf(...runs: readonly (readonly [report: string, exitCode: number])[]): readonly [string, number | null] {
  const folder = temporaryFolder()
  const told = runs.flatMap(([report, exitCode], at) => {
    const path = join(folder, `${at}.json`)
    writeFileSync(path, report)
    return [path, String(exitCode)]
  })
  const { stdout, status } = spawnSync(process.execPath, ['.ci/summary.mjs', ...told], { encoding: 'utf8' })
  return [stdout, status]
}

const file = (status: string, ...tests: readonly string[]) => ({
  name: 'a.test.ts',
  status,
  assertionResults: tests.map((result) => ({ status: result, fullName: 'pushes are kept' })),
})

// The line before the last names the test or file that failed.
test.each([
  ['all passed', { numPassedTests: 3, numFailedTests: 0, testResults: [file('passed', 'passed')] }, 0, '3 passed, 0 failed\n'],
  [
    'one failed',
    { numPassedTests: 2, numFailedTests: 1, testResults: [file('failed', 'failed')] },
    1,
    'failed: a.test.ts > pushes are kept\n2 passed, 1 failed\n',
  ],
  [
    'a file did not load',
    { numPassedTests: 2, numFailedTests: 0, testResults: [file('failed')] },
    1,
    'failed: a.test.ts\n2 passed, 1 failed\n',
  ],
  ['an error came outside of all tests', { numPassedTests: 2, numFailedTests: 0, testResults: [] }, 1, '2 passed, 1 failed\n'],
])('the last line of the gate has the right counts if %s', (_name, report, exitCode, line) => {
  expect(summaryOf([JSON.stringify(report), exitCode])).toEqual([line, exitCode])
})

test('the last line of the gate adds up its runs, and fails if one of them failed', () => {
  const tests = JSON.stringify({ numPassedTests: 30, numFailedTests: 0, testResults: [file('passed', 'passed')] })
  const stress = JSON.stringify({ numPassedTests: 3, numFailedTests: 1, testResults: [file('failed', 'failed')] })
  expect(summaryOf([tests, 0], [stress, 1])).toEqual(['failed: a.test.ts > pushes are kept\n33 passed, 1 failed\n', 1])
  expect(summaryOf([tests, 0], [tests, 0])).toEqual(['60 passed, 0 failed\n', 0])
  expect(summaryOf([tests, 0], ['', 0])).toEqual(['30 passed, 1 failed\n', 1])
})

test('the gate says why a test failed, at most the first lines of its message', () => {
  const failed = { status: 'failed', fullName: 'pushes are kept', failureMessages: [`seed 7\n${'x'.repeat(1000)}\n\n3\n4\n5\n6\n7`] }
  const report = JSON.stringify({ numPassedTests: 2, numFailedTests: 1, testResults: [{ ...file('failed'), assertionResults: [failed] }] })
  const [said] = summaryOf([report, 1])
  expect(said).toBe(`failed: a.test.ts > pushes are kept\n  seed 7\n  ${'x'.repeat(300)}…\n  3\n  4\n  5\n  6\n2 passed, 1 failed\n`)
})

test('the gate fails if a test was left out, and says how many', () => {
  const report = JSON.stringify({ numPassedTests: 2, numFailedTests: 0, numPendingTests: 4 })
  expect(summaryOf([report, 0])).toEqual(['4 tests were left out; the gate runs all of them.\n2 passed, 0 failed, 4 skipped\n', 1])
})

test('the last line of the gate counts a failure if the runner wrote no report', () => {
  expect(summaryOf(['', 1])).toEqual(['0 passed, 1 failed\n', 1])
})

test('the gate runs the three test commands of package.json and every other check', () => {
  expect(() => accessSync(RUN, constants.X_OK)).not.toThrow()
  const script = readFileSync(RUN, 'utf8')
  for (const step of ['npm ci', 'npm test --', 'npm run test:extended --', 'npm run test:stress --', 'npm run check:static'])
    expect(script).toContain(step)
  expect(script.trimEnd().split('\n').at(-1)).toBe(
    '[ "$static" -eq 0 ] && [ "$tests" -eq 0 ] && [ "$extended" -eq 0 ] && [ "$stress" -eq 0 ] && [ "$outcome" -eq 0 ]',
  )
})

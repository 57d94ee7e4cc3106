import { spawnSync } from 'node:child_process'
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary.ts'

const RUN = '.ci/run'

/** What `.ci/summary.mjs` prints for a report and the runner's exit code. */
function summaryOf(report: string, exitCode: number): string {
  const path = join(temporaryFolder(), 'report.json')
  writeFileSync(path, report)
  return spawnSync(process.execPath, ['.ci/summary.mjs', path, String(exitCode)], { encoding: 'utf8' }).stdout
}

const file = (status: string, ...tests: readonly string[]) => ({ status, assertionResults: tests.map((result) => ({ status: result })) })

test.each([
  ['all passed', { numPassedTests: 3, numFailedTests: 0, testResults: [file('passed', 'passed')] }, 0, '3 passed, 0 failed\n'],
  ['one failed', { numPassedTests: 2, numFailedTests: 1, testResults: [file('failed', 'failed')] }, 1, '2 passed, 1 failed\n'],
  ['a file did not load', { numPassedTests: 2, numFailedTests: 0, testResults: [file('failed')] }, 1, '2 passed, 1 failed\n'],
  ['an error came outside of all tests', { numPassedTests: 2, numFailedTests: 0, testResults: [] }, 1, '2 passed, 1 failed\n'],
])('the last line of the gate is honest when %s', (_name, report, exitCode, line) => {
  expect(summaryOf(JSON.stringify(report), exitCode)).toBe(line)
})

test('the gate fails where a test was left out, and says how many', () => {
  const path = join(temporaryFolder(), 'report.json')
  writeFileSync(path, JSON.stringify({ numPassedTests: 2, numFailedTests: 0, numPendingTests: 4 }))
  const { status, stdout } = spawnSync(process.execPath, ['.ci/summary.mjs', path, '0'], { encoding: 'utf8' })
  expect([status, stdout]).toEqual([1, '4 tests were left out; the gate runs all of them.\n2 passed, 0 failed, 4 skipped\n'])
})

test('the last line of the gate is honest when the runner wrote no report', () => {
  expect(summaryOf('', 1)).toBe('0 passed, 1 failed\n')
})

test('the gate can be run, and runs the test command of package.json and every other check', () => {
  expect(() => accessSync(RUN, constants.X_OK)).not.toThrow()
  const script = readFileSync(RUN, 'utf8')
  for (const step of ['npm ci', 'npm test --', 'npm run check:static']) expect(script).toContain(step)
  expect(script.trimEnd().split('\n').at(-1)).toBe('[ "$static" -eq 0 ] && [ "$tests" -eq 0 ] && [ "$outcome" -eq 0 ]')
})

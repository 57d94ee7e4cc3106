// Prints the outcome of test runs from the reports of the runner: the tests that failed with how each message begins (of a test with random cases: the seed
// and the path that repeat it), then one line that counts them all.
// Called as `node .ci/summary.mjs (REPORT EXIT_CODE)...`.
// Exits with 1 if a test failed or was left out: here every tool is at hand, so leaving one out would hide what it shows.
import { existsSync, readFileSync } from 'node:fs'

const LINES = 6
const LINE_LENGTH = 300

const NOTHING = { passed: 0, skipped: 0, failed: 0 }

const beginningOf = (message = '') =>
  message
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(0, LINES)
    .map((line) => `\n  ${line.length > LINE_LENGTH ? `${line.slice(0, LINE_LENGTH)}…` : line}`)
    .join('')

/** Counts the tests of one run, and names those that failed. A run without a report failed. */
function countsOf(path, exitCode) {
  const report = existsSync(path) && readFileSync(path, 'utf8') !== '' ? JSON.parse(readFileSync(path, 'utf8')) : null
  // A file that could not be loaded failed without a failed test in it.
  const unloaded = (report?.testResults ?? []).filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((result) => result.status === 'failed'),
  )
  const failed = (report?.numFailedTests ?? 0) + unloaded.length
  const titles = (report?.testResults ?? []).flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter((result) => result.status === 'failed')
      .map(({ fullName, failureMessages = [] }) => `${name} > ${fullName}${beginningOf(failureMessages[0])}`),
  )
  return {
    titles: [...titles, ...unloaded.map(({ name, message }) => `${name}${beginningOf(message)}`)],
    passed: report?.numPassedTests ?? 0,
    skipped: (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0),
    // A run that failed for a reason outside of all tests failed nevertheless, and so did one that ran nothing.
    failed: failed === 0 && (exitCode !== '0' || report === null) ? 1 : failed,
  }
}

const runs = []
for (let at = 2; at < process.argv.length; at += 2) runs.push(countsOf(process.argv[at], process.argv[at + 1]))
const { passed, skipped, failed } = runs.reduce(
  (all, run) => ({ passed: all.passed + run.passed, skipped: all.skipped + run.skipped, failed: all.failed + run.failed }),
  runs.length === 0 ? { ...NOTHING, failed: 1 } : NOTHING,
)
for (const title of runs.flatMap((run) => run.titles)) process.stdout.write(`failed: ${title}\n`)
if (skipped > 0) process.stdout.write(`${skipped} tests were left out; the gate runs all of them.\n`)
process.stdout.write(`${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}\n`)
process.exitCode = failed > 0 || skipped > 0 ? 1 : 0

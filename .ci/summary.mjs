// Prints the outcome of a test run as one line, from the runner's own JSON report: `node .ci/summary.mjs REPORT EXIT_CODE`.
// Exits with 1 if a test failed or was left out: here every tool is at hand, so leaving one out would hide what it shows.
import { existsSync, readFileSync } from 'node:fs'

const [, , path = '', exitCode = '1'] = process.argv
const report = existsSync(path) && readFileSync(path, 'utf8') !== '' ? JSON.parse(readFileSync(path, 'utf8')) : null

const passed = report?.numPassedTests ?? 0
const skipped = (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0)
// A file that could not be loaded failed without a failed test in it.
const unloaded = (report?.testResults ?? []).filter(
  ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((result) => result.status === 'failed'),
).length
const counted = (report?.numFailedTests ?? 0) + unloaded
// A run that failed for a reason outside of all tests failed nevertheless.
const failed = counted === 0 && exitCode !== '0' ? 1 : counted
if (skipped > 0) process.stdout.write(`${skipped} tests were left out; the gate runs all of them.\n`)
process.stdout.write(`${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}\n`)
process.exitCode = failed > 0 || skipped > 0 ? 1 : 0

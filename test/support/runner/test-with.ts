import { test } from 'vitest'
import { lacks, type Tool } from './system-tools.ts'

/** `test` if the machine has these tools. Otherwise the test is skipped, and the run names the missing tools at its end. */
export function testWith(...tools: readonly Tool[]) {
  return test.skipIf(tools.some(lacks))
}

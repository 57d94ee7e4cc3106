import { test } from 'vitest'
import { lacks, type Tool } from './system-tools.ts'

/** `test` where the machine has these tools; elsewhere the test is skipped, and the run names the tools at its end. */
export function testWith(...tools: readonly Tool[]) {
  return test.skipIf(tools.some(lacks))
}

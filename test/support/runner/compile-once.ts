import { chmodSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'rolldown'
import type { TestProject } from 'vitest/node'
import shippedBuild from '../../../rolldown.config.ts'
import { leftOut } from './system-tools.ts'

/**
 * Before all tests, compiles the relay, because compiled code starts in half the time. The result looks like an installed package. `shipped`
 * runs it as a process of its own, and `relay-in-process` in the process of the test. After all tests, names the tests that were skipped.
 */
export async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-compiled-'))
  // Some tests run the relay as another user.
  chmodSync(folder, 0o755)
  await compile(join(folder, 'dist'))
  await compile(join(folder, 'in-process'), { relay: 'test/support/runner/relay-in-process.ts' })
  for (const name of ['config', 'docs', 'node_modules', 'package.json']) symlinkSync(resolve(name), join(folder, name))
  project.provide('shippedFolder', folder)
  return () => {
    rmSync(folder, { recursive: true, force: true })
    const sentence = leftOut()
    if (sentence !== null) process.stdout.write(`${sentence}\n`)
  }
}

/** Compiles the shipped programs and `more`, a source for each name, to a folder. */
async function compile(dir: string, more: Readonly<Record<string, string>> = {}): Promise<void> {
  // Hide warnings about libraries, which mean nothing to people who run the tests. Code that does not compile still throws.
  await build({ ...shippedBuild, logLevel: 'silent', input: { ...shippedBuild.input, ...more }, output: { ...shippedBuild.output, dir } })
}

declare module 'vitest' {
  export interface ProvidedContext {
    shippedFolder: string
  }
}

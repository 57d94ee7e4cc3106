import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { TestProject } from 'vitest/node'
import { leftOut } from './system-tools.ts'

/**
 * Before all tests: builds the relay that process tests run (`shipped`), laid out as an installed package with manifest, configs and dependencies.
 * Compiled code starts in half the time. After all tests: names the tests that were skipped.
 */
export function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-compiled-'))
  // Some tests run it as another user.
  chmodSync(folder, 0o755)
  const built = spawnSync('node_modules/.bin/rolldown', ['--config', '--dir', join(folder, 'dist')], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`it does not compile: ${built.stdout}${built.stderr}`)
  for (const name of ['config', 'node_modules', 'package.json']) symlinkSync(resolve(name), join(folder, name))
  project.provide('shippedFolder', folder)
  return () => {
    rmSync(folder, { recursive: true, force: true })
    const sentence = leftOut()
    if (sentence !== null) process.stdout.write(`${sentence}\n`)
  }
}

declare module 'vitest' {
  export interface ProvidedContext {
    shippedFolder: string
  }
}

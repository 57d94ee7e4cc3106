import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { compileInto } from './compiled.ts'

/** Before all tests: those that run the relay as a process of its own run what is shipped, which also starts in half the time. */
export function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-compiled-'))
  // Some run it as another user.
  chmodSync(folder, 0o755)
  project.provide('relayProgram', compileInto(folder))
  return () => rmSync(folder, { recursive: true, force: true })
}

declare module 'vitest' {
  export interface ProvidedContext {
    /** The compiled `main.js`. */
    relayProgram: string
  }
}

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Creates a folder for one test and deletes it afterwards. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

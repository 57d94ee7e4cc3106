import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { type Sections, startTestRelay } from './relay.ts'

type TestRelay = Awaited<ReturnType<typeof startTestRelay>>

/**
 * Starts one relay for the tests of a file that need no special config, because a start takes longer than most tests. A test must use its own parcels
 * and remove whatever else it adds. Returns a function that returns the relay. Only tests may call that function.
 */
export function relayOfFile(carrierUrl: string, sections: Sections = {}): () => TestRelay {
  let relay: TestRelay | null = null
  const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-'))
  beforeAll(async () => {
    relay = await startTestRelay(folder, carrierUrl, sections)
  })
  afterAll(async () => {
    await relay?.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return () => {
    if (relay === null) throw new Error('the relay is not running yet: it starts before the first test')
    return relay
  }
}

/** Returns a function that turns a tracking id into one that only the running test has. */
export function idsOfTest(): (id: string) => string {
  let tests = 0
  beforeEach(() => {
    tests += 1
  })
  return (id) => `${tests}${id}`
}

import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Engine } from '../../src/store/contract.ts'
import { sqlite } from '../../src/store/sqlite/sqlite-engine.ts'
import { temporaryFolder } from './temporary.ts'

/** Every engine the relay can keep its data in: the contract suite runs on each. */
export const engines: readonly Engine[] = [sqlite]

/** A store of its own, new, with nothing above it. */
export async function openBareStore(engine: Engine) {
  const place = join(temporaryFolder(), 'relay.db')
  const store = await engine.openWriteStore(place)
  const reads = engine.openReadStore(place)
  onTestFinished(async () => {
    await reads.close()
    await store.close()
  })
  return { place, store, reads }
}

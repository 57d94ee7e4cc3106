import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Engine } from '../../src/store/contract.ts'
import { postgres } from '../../src/store/postgres/postgres-engine.ts'
import { sqlite } from '../../src/store/sqlite/sqlite-engine.ts'
import { createDatabase } from './postgres-database.ts'
import { temporaryFolder } from './temporary.ts'

/** Every engine the relay can keep its data in: the contract suite runs on each. */
export const engines: readonly Engine[] = [sqlite, postgres]

/** Where an engine can keep a store of a test's own: a path, or the address of an empty database. */
export async function newPlace(engine: Engine): Promise<string> {
  return engine.name === postgres.name ? (await createDatabase()).url : join(temporaryFolder(), 'relay.db')
}

/** A store of its own, new, with nothing above it. */
export async function openBareStore(engine: Engine) {
  const place = await newPlace(engine)
  const store = await engine.openWriteStore(place)
  const reads = engine.openReadStore(place)
  onTestFinished(async () => {
    await reads.close()
    await store.close()
  })
  return { place, store, reads }
}

import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Engine } from '../../../src/core/store/contract.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { temporaryFolder } from '../runner/temporary.ts'
import { copyDatabase, createDatabase, withDatabase } from './postgres-database.ts'

/** Every storage engine. The contract suite runs on each. */
export const engines: readonly Engine[] = [sqlite, postgres]

/** Returns the address of a new, empty store: a path, or the URL of a new database. */
export async function newPlace(engine: Engine): Promise<string> {
  return engine.name === postgres.name ? (await createDatabase()).url : join(temporaryFolder(), 'relay.db')
}

/** Runs `work` on a new store, for tests that need many stores. */
export async function withPlace<T>(engine: Engine, work: (place: string) => Promise<T>): Promise<T> {
  return engine.name === postgres.name ? await withDatabase(work) : await work(await newPlace(engine))
}

/** Copies what is durable in a store, even while it is open. Returns the address of the copy. */
export async function copyPlace(engine: Engine, place: string): Promise<string> {
  if (engine.name === postgres.name) return await copyDatabase(place)
  const copy = await newPlace(engine)
  for (const ending of ['', '-wal', '.marker']) if (existsSync(place + ending)) copyFileSync(place + ending, copy + ending)
  return copy
}

/** Opens a new store without any flow on top. */
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

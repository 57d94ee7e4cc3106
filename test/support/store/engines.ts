import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { startRepeating } from '../../../src/core/runtime/schedule.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { watchServer } from '../../../src/server/postgres/server-watch.ts'
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

/** As often as a relay looks for commits of others. */
const LOOK_EVERY_MS = 100
const PATIENCE_MS = 30_000

/**
 * Returns an engine that asks its server ten times a second, as a relay does. Without that, a server on a busy machine may seem silent while all
 * connections wait for each other's locks: a new connection, which takes a new process of the server, then takes longer than the watch waits.
 */
export function asInRelay(engine: Engine, place: string): { readonly engine: Engine; readonly stop: () => Promise<void> } {
  if (engine.name !== postgres.name) return { engine, stop: async () => undefined }
  const watch = watchServer(place)
  const { pool, close } = watch.openPool({ connectionsMax: 1, connectTimeoutMs: PATIENCE_MS, answerTimeoutMs: PATIENCE_MS })
  const looking = startRepeating(async () => void (await pool.query('select 1').catch(() => undefined)), LOOK_EVERY_MS)
  return {
    engine: {
      ...engine,
      openWriteStore: (address) => postgres.openWriteStore(address, undefined, watch),
      openReadStore: (address) => postgres.openReadStore(address, watch),
    },
    async stop() {
      looking.stop()
      await close()
    },
  }
}

import type { ReadSide } from '../../flow/read-side.ts'
import type { Engine, OpenWriteStore } from '../contract.ts'
import { refuseMoved } from '../moving/move-mark.ts'
import { createReadStore } from '../read-store.ts'
import { createParcelVersions, QUERIES_AT_ONCE } from './history/parcel-versions.ts'
import { readMark } from './moving/postgres-move-mark.ts'
import { takePoolerParameter } from './pooler-parameter.ts'
import { createPostgresReader, createPostgresWriter, type PostgresOptions } from './postgres.ts'
import { migratePostgres } from './postgres-migrate.ts'
import { nameDatabase } from './postgres-pool.ts'
import { createPostgresWriteStore, type PostgresWriteOptions } from './postgres-write-store.ts'
import { refuseUnsafeServer } from './refuse-unsafe-server.ts'
import { type ServerWatch, type WatchedPool, watchServer } from './server-watch.ts'

const CONNECT_TIMEOUT_MS = 5000
/** A little longer than the server lets a statement run, so a server that has not answered by then is gone. */
const ANSWER_TIMEOUT_MS = 11_000
const WRITERS = 6
const READERS = 6

/** `watch`: over all connections of a relay; absent: one for this alone. */
export interface PostgresEngine extends Engine {
  openWriteStore(place: string, options?: PostgresWriteOptions, watch?: ServerWatch): Promise<OpenWriteStore>
  openReadStore(place: string, watch?: ServerWatch): ReadSide
}

/** A place is the address of the database. */
export const postgres: PostgresEngine = {
  name: 'postgres',
  async openWriteStore(place, options, watch) {
    const name = nameDatabase(place)
    const { pool, options: usage, close } = openPostgres(place, WRITERS, watch)
    try {
      await refuseUnsafeServer(pool, name)
      await migratePostgres(pool, name)
      refuseMoved(await readMark({ query: (text, values = []) => pool.query(text, [...values]) }), name)
    } catch (error) {
      await close()
      throw error
    }
    return { ...createPostgresWriteStore(createPostgresWriter(pool, usage), options), close }
  },
  openReadStore(place, watch = watchServer(place)) {
    const { pool, options, close } = openPostgres(place, READERS, watch)
    // On their own connections, so that cached answers do not wait for long lists. They are planned each time, which is cheap: a plan made while the
    // table was small would read all of it.
    const versions = openPostgres(place, QUERIES_AT_ONCE, watch)
    const ofVersions = createPostgresReader(versions.pool, { ...versions.options, named: false })
    const reads = createReadStore({
      ...createPostgresReader(pool, options),
      async close() {
        await Promise.all([close(), versions.close()])
      },
    })
    return { ...reads, parcelVersion: createParcelVersions(ofVersions.session) }
  },
}

export interface Opened extends Pick<WatchedPool, 'pool' | 'close'> {
  readonly options: PostgresOptions
}

/** Connections to a database, with a watch on its server. */
export function openPostgres(place: string, connectionsMax: number, watch = watchServer(place)): Opened {
  const { pool, run, close } = watch.openPool({
    connectionsMax,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
    pipeline: true,
  })
  return { pool, options: { named: takePoolerParameter(place).named, watch: { run } }, close }
}

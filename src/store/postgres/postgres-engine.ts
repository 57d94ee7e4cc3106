import pg, { type Pool } from 'pg'
import type { Engine, OpenWriteStore } from '../contract.ts'
import { refuseMoved } from '../moving/move-mark.ts'
import { createReadStore } from '../read-store.ts'
import { createParcelVersions, QUERIES_AT_ONCE } from './parcel-versions.ts'
import { takePoolerParameter } from './pooler-parameter.ts'
import { createPostgresReader, createPostgresWriter, type PostgresOptions } from './postgres.ts'
import { migratePostgres } from './postgres-migrate.ts'
import { readMark } from './postgres-move-mark.ts'
import { nameDatabase, openPool } from './postgres-pool.ts'
import { createPostgresWriteStore, type PostgresWriteOptions } from './postgres-write-store.ts'
import { createReadDeadline } from './read-deadline.ts'
import { refuseUnsafeServer } from './refuse-unsafe-server.ts'
import { watchServer } from './server-watch.ts'

const CONNECT_TIMEOUT_MS = 5000
/** A little longer than the server lets a statement run, so a server that has not answered by then is gone. */
const ANSWER_TIMEOUT_MS = 11_000
const WRITERS = 6
const READERS = 6

export interface PostgresEngine extends Engine {
  openWriteStore(place: string, options?: PostgresWriteOptions): Promise<OpenWriteStore>
}

/** A place is the address of the database. */
export const postgres: PostgresEngine = {
  name: 'postgres',
  async openWriteStore(place, options) {
    const name = nameDatabase(place)
    const { pool, options: usage, close } = openPostgres(place, WRITERS)
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
  openReadStore(place) {
    const { pool, options, close } = openPostgres(place, READERS)
    // On their own connections, so that cached answers do not wait for long lists. They are planned each time, which is cheap: a plan made while the
    // table was small would read all of it.
    const versions = openPostgres(place, QUERIES_AT_ONCE)
    const ofVersions = createPostgresReader(versions.pool, { ...versions.options, named: false })
    const deadline = createReadDeadline()
    const reads = createReadStore({
      ...createPostgresReader(pool, options),
      async close() {
        deadline.end()
        await Promise.all([close(), versions.close()])
      },
    })
    return {
      ...reads,
      findParcel: (identifier) => deadline.run(() => reads.findParcel(identifier)),
      parcelVersion: createParcelVersions(ofVersions.session, deadline),
    }
  },
}

export interface Opened {
  readonly pool: Pool
  readonly options: PostgresOptions
  /** Once, however often it is asked for. */
  close(): Promise<void>
}

/** Connections to a database, with a watch on its server. */
export function openPostgres(place: string, connectionsMax: number): Opened {
  const { url, named } = takePoolerParameter(place)
  const pool = openPool(url, {
    connectionsMax,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
    pipeline: true,
    onConnectionLost: () => undefined,
  })
  const watch = watchServer(pool, () => new pg.Client({ connectionString: url, application_name: 'parcel-relay' }))
  return {
    pool,
    options: { named, watch },
    async close() {
      if (!pool.ending) await watch.end()
    },
  }
}

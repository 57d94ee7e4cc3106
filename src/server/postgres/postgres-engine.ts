import type { Pool } from 'pg'
import { StorageFailure } from '../../core/domain/errors.ts'
import type { Engine, OpenWriteStore } from '../../core/store/contract.ts'
import { createReadStore, type ReadSide } from '../../core/store/read-store.ts'
import { type MoveMark, refuseMoved } from '../../upkeep/moving/store-moves.rows.ts'
import { timelineOf } from './admin/lost-commits.ts'
import { createParcelVersions, QUERIES_AT_ONCE } from './history/postgres-parcels.ts'
import { readMark } from './moving/postgres-move-mark.ts'
import { createPostgresReader, createPostgresWriter, type PostgresOptions } from './postgres.ts'
import { migratePostgres } from './postgres-migrate.ts'
import { nameDatabase, takePoolerParameter } from './postgres-pool.ts'
import { ALONE, createPostgresWriteStore, type PostgresWriteOptions } from './postgres-write-store.ts'
import { refuseUnsafeServer } from './refuse-unsafe-server.ts'
import { type ServerWatch, type WatchedPool, watchServer } from './server-watch.ts'

const CONNECT_TIMEOUT_MS = 5000
/** A little longer than the server lets a statement run. A server that takes longer to answer counts as gone. */
const ANSWER_TIMEOUT_MS = 11_000
const WRITERS = 6
const READERS = 6

/** `watch`: the watch over all connections of a relay; absent: the store gets a watch to itself. */
export interface PostgresEngine extends Engine {
  openWriteStore(address: string, options?: PostgresWriteOptions, watch?: ServerWatch): Promise<OpenWriteStore>
  /**
   * `isLive`: whether this relay holds a lease. With a lease, nobody else can move the store. Without one, each read first checks that the
   * store was not moved. `isLive` absent: no read checks that.
   */
  openReadStore(address: string, watch?: ServerWatch, isLive?: () => boolean): ReadSide
}

/** The PostgreSQL engine. An address is the URL of a database. */
export const postgres: PostgresEngine = {
  name: 'postgres',
  async openWriteStore(address, options, watch) {
    const name = nameDatabase(address)
    const { pool, options: usage, close } = openPostgres(address, WRITERS, watch)
    let hasTimeline = false
    try {
      await refuseUnsafeServer(pool, name)
      await migratePostgres(pool, name)
      refuseMoved(await markIn(pool), name)
      hasTimeline = (await timelineOf(pool)) !== null
    } catch (error) {
      await close()
      throw error
    }
    return { ...createPostgresWriteStore(createPostgresWriter(pool, usage), { ...ALONE, ...options, hasTimeline }), close }
  },
  openReadStore(address, watch = watchServer(address), isLive = () => true) {
    const { pool, options, close } = unlessMoved(openPostgres(address, READERS, watch), isLive)
    // Before a cached answer is served, the version of its parcel is read. This read has its own connections, so that it waits for no long lists.
    // The query is planned each time, which is cheap. A kept plan that was made while the table was small would read the whole table.
    const versions = unlessMoved(openPostgres(address, QUERIES_AT_ONCE, watch), isLive)
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
  readonly options: WatchedOptions
}

export function openPostgres(address: string, connectionsMax: number, watch = watchServer(address)): Opened {
  const { pool, run, close } = watch.openPool({
    connectionsMax,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
    pipeline: true,
  })
  return { pool, options: { named: takePoolerParameter(address).named, watch: { run } }, close }
}

interface WatchedOptions extends PostgresOptions {
  readonly watch: Pick<WatchedPool, 'run'>
}

/** Makes reads fail if the store was moved. A relay without a lease may have stood still during the move, and would read old data. */
function unlessMoved(opened: Opened, isLive: () => boolean): Opened {
  const { pool, options } = opened
  const { run } = options.watch
  const watch: WatchedOptions['watch'] = {
    async run(work) {
      const mark = isLive() ? null : await run(() => markIn(pool))
      if (mark?.state === 'moved')
        throw new StorageFailure(`the store was moved to ${mark.peer}, and this relay does not use the new one yet`)
      return await run(work)
    },
  }
  return { ...opened, options: { ...options, watch } }
}

function markIn(pool: Pool): Promise<MoveMark | null> {
  return readMark({ query: (text, values = []) => pool.query(text, [...values]) })
}

import type { Pool } from 'pg'
import { StorageFailure } from '../../core/domain/errors.ts'
import type { Engine, OpenWriteStore } from '../../core/store/contract.ts'
import type { SharedCarrier, SharedFlights } from '../../core/store/polling/shared-carrier.ts'
import { createReadStore, type ReadSide } from '../../core/store/read-store.ts'
import { type MoveMark, refuseMoved } from '../../upkeep/moving/store-moves.rows.ts'
import { timelineOf } from './admin/lost-commits.ts'
import { createParcelVersions, QUERIES_AT_ONCE } from './history/postgres-parcels.ts'
import { readMark } from './moving/postgres-move-mark.ts'
import { createBudgetStore, createSharedFlights, createSharedToken } from './polling/postgres-shared-carrier.ts'
import { createPostgresReader, createPostgresWriter, type PostgresOptions } from './postgres.ts'
import { openingFailure } from './postgres-failure.ts'
import { migratePostgres } from './postgres-migrate.ts'
import { nameDatabase, takePoolerParameter } from './postgres-pool.ts'
import { ALONE, createPostgresWriteStore, type PostgresWriteOptions } from './postgres-write-store.ts'
import { type ServerWatch, type WatchedPool, watchServer } from './server-watch.ts'

const CONNECT_TIMEOUT_MS = 5000
/** A little longer than the server lets a statement run. A server that takes longer to answer counts as gone. */
const ANSWER_TIMEOUT_MS = 11_000
const WRITERS = 6
const READERS = 6
/** The number of connections. They are separate from those of the store, so that no call to the carrier waits for a batch of pushes. */
const SHARING = 2

/**
 * The PostgreSQL engine. An address is the URL of a database. `watch`: the watch over all connections of a relay; absent: the store gets a watch to
 * itself.
 */
export const postgres = {
  name: 'postgres',
  async openWriteStore(address: string, options?: PostgresWriteOptions, watch?: ServerWatch): Promise<OpenWriteStore> {
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
  /**
   * `isLive`: whether this relay holds a lease. With a lease, nobody else can move the store. Without one, each read first checks that the
   * store was not moved. `isLive` absent: no read checks that.
   */
  openReadStore(address: string, watch: ServerWatch = watchServer(address), isLive: () => boolean = () => true): ReadSide {
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
} satisfies Engine

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

/**
 * Opens the budget, token and flights that replicas share. Their tables must exist. `watch`: the `ServerWatch` of the relay; absent: a new one
 * is made.
 */
export function openSharedCarrier(
  address: string,
  watch = watchServer(address),
): SharedCarrier & { readonly flights: SharedFlights; close(): Promise<void> } {
  const { pool, options, close } = openPostgres(address, SHARING, watch)
  const writer = createPostgresWriter(pool, options)
  return { budget: createBudgetStore(writer), token: createSharedToken(writer), flights: createSharedFlights(writer), close }
}

const VERSION_MIN = 15

/** The settings that a server reports. Null: it lacks the setting, because it is another, compatible database. */
interface ServerFacts {
  readonly version: string
  readonly version_number: number
  readonly synchronous_commit: string | null
  readonly fsync: string | null
  readonly full_page_writes: string | null
  readonly encoding: string
  readonly is_standby: boolean
  readonly read_only: string | null
}

const QUERY = `select current_setting('server_version') as version, current_setting('server_version_num')::integer as version_number,
  current_setting('synchronous_commit', true) as synchronous_commit, current_setting('fsync', true) as fsync,
  current_setting('full_page_writes', true) as full_page_writes, current_setting('server_encoding') as encoding,
  pg_is_in_recovery() as is_standby, current_setting('default_transaction_read_only', true) as read_only`

/**
 * Checks a server before anything is written to it. Rejects, with all reasons and remedies, if it cannot be reached or written to, or could
 * lose confirmed commits. `name` names the database in messages.
 */
export async function refuseUnsafeServer(pool: Pool, name: string): Promise<void> {
  const [facts] = await readFacts(pool, name)
  const reasons = facts === undefined ? [] : faultsOf(facts)
  if (reasons.length > 0) throw new Error(reasons.map((reason) => `store: ${name}: ${reason}`).join('\n'))
}

async function readFacts(pool: Pool, name: string): Promise<readonly ServerFacts[]> {
  try {
    return (await pool.query<ServerFacts>(QUERY)).rows
  } catch (error) {
    throw openingFailure(name, error)
  }
}

/** Lists the reasons why a server with these settings is not safe to use, each with its remedy. */
export function faultsOf(facts: ServerFacts): readonly string[] {
  const faults: string[] = []
  if (facts.version_number < VERSION_MIN * 10_000)
    faults.push(`the server is PostgreSQL ${facts.version}; the relay needs ${VERSION_MIN} or newer. Upgrade the server.`)
  if (facts.is_standby)
    faults.push('the server is a standby, which can only be read (pg_is_in_recovery). Name the primary in `store`, or promote this server.')
  else if (facts.read_only === 'on')
    faults.push(
      'default_transaction_read_only is on, so nothing can be written. Write default_transaction_read_only = off in postgresql.conf, or reset ' +
        'it where it was set for this user or database (ALTER ROLE or ALTER DATABASE ... RESET default_transaction_read_only).',
    )
  if (facts.encoding !== 'UTF8')
    faults.push(
      `the encoding of the database is ${facts.encoding}, which cannot hold every text. An encoding cannot be changed: make another database ` +
        "(CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0) and name it in `store`.",
    )
  if (facts.synchronous_commit === 'off')
    faults.push(
      'synchronous_commit is off, so a server that stops loses what it has confirmed. Write synchronous_commit = on in postgresql.conf, or reset ' +
        'it where it was set for this user or database (ALTER ROLE or ALTER DATABASE ... RESET synchronous_commit).',
    )
  if (facts.fsync === 'off')
    faults.push(
      'fsync is off, so a power cut destroys the database. Write fsync = on in postgresql.conf and reload the server’s configuration.',
    )
  if (facts.full_page_writes === 'off')
    faults.push(
      'full_page_writes is off, so a page that a power cut left half written cannot be repaired. Write full_page_writes = on in postgresql.conf ' +
        'and reload the server’s configuration.',
    )
  return faults
}

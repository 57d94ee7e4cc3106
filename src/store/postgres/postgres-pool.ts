import type { Socket } from 'node:net'
import pg from 'pg'
import { unescapeNul } from './nul-escape.ts'

export interface PoolOptions {
  readonly connectionsMax: number
  /** Whether statements are sent without waiting for the ones before; absent: they are not. */
  readonly pipeline?: boolean
  /** After how long without an answer a connection is given up, in milliseconds; absent: never. */
  readonly answerTimeoutMs?: number
  /** How long a query waits for a connection. */
  readonly connectTimeoutMs: number
  /** Makes the socket of a new connection; absent: the driver does. */
  readonly newSocket?: () => Socket
  /** Told of a connection that was lost while nobody used it: the pool opens another when one is wanted. */
  onConnectionLost(error: Error): void
}

/** The numbers of the types in PostgreSQL's catalogue. */
const INT8 = 20
const TEXT = 25

/**
 * Connections to the database, made when they are wanted. 64-bit numbers are read as JavaScript's: ids, times and sequences stay below 2^53, and a
 * program that uses the driver for something else keeps its texts.
 */
export function openPool(
  url: string,
  { connectionsMax, connectTimeoutMs, pipeline = false, answerTimeoutMs, newSocket, onConnectionLost }: PoolOptions,
): pg.Pool {
  // Throws without the address if it cannot be read, which the pool would do later and with it.
  readAddress(url)
  const types = new pg.TypeOverrides()
  types.setTypeParser(INT8, Number)
  types.setTypeParser(TEXT, unescapeNul)
  const pool = new pg.Pool({
    connectionString: url,
    max: connectionsMax,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'parcel-relay',
    // A peer that is gone without a word is noticed by the system.
    keepAlive: true,
    types,
    pipeline,
    ...(answerTimeoutMs === undefined ? {} : { query_timeout: answerTimeoutMs }),
    ...(newSocket === undefined ? {} : { stream: newSocket }),
  })
  // Without listeners a lost connection would end the process. The pool reports an idle one; the next statement of one in use fails.
  pool.on('error', onConnectionLost)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** How messages name a database: without the password and the parameters. */
export function nameDatabase(url: string): string {
  const { user, host, port, database } = readAddress(url)
  if (host.startsWith('/')) return `postgres://${user}@/${database} (socket in ${host})`
  return `postgres://${user}@${host.includes(':') ? `[${host}]` : host}:${port}/${database}`
}

/** As the driver reads it, or throws. */
function readAddress(url: string): Pick<pg.Client, 'user' | 'host' | 'port' | 'database'> {
  try {
    return new pg.Client({ connectionString: url })
  } catch {
    // Without the address, and without the error that quotes it: there may be a password in it.
    throw new Error(
      'store: the address of the database cannot be read. Write postgres://user:password@host:5432/database, with %-escapes in the password.',
    )
  }
}

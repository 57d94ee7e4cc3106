import type { Socket } from 'node:net'
import pg from 'pg'
import { unescapeNul } from './postgres-dialect.ts'

export interface PoolOptions {
  readonly connectionsMax: number
  /** Whether a statement may be sent before the server has answered the earlier statements; absent: no. */
  readonly pipeline?: boolean
  /** A connection that takes longer to answer is given up; absent: no limit. */
  readonly answerTimeoutMs?: number
  /** How long a query waits for a connection. */
  readonly connectTimeoutMs: number
  /** Makes the socket of a new connection; absent: the driver does. */
  readonly newSocket?: () => Socket
  /** Called when an idle connection is lost. */
  onConnectionLost(error: Error): void
}

/** The ids of types in PostgreSQL's catalogue. */
const INT8 = 20
const TEXT = 25

/**
 * Makes a pool, which opens connections when they are needed. 64-bit integers become JavaScript numbers, which is safe because ids, times and
 * sequences stay below 2^53.
 */
export function openPool(
  url: string,
  { connectionsMax, connectTimeoutMs, pipeline = false, answerTimeoutMs, newSocket, onConnectionLost }: PoolOptions,
): pg.Pool {
  // Throw now if the address cannot be read. The pool would throw only at the first query, with the whole address in the message.
  readAddress(url)
  const types = new pg.TypeOverrides()
  types.setTypeParser(INT8, Number)
  types.setTypeParser(TEXT, unescapeNul)
  const pool = new pg.Pool({
    connectionString: url,
    max: connectionsMax,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'parcel-relay',
    // Makes the operating system notice a server that has gone without closing the connection.
    keepAlive: true,
    types,
    pipeline,
    ...(answerTimeoutMs === undefined ? {} : { query_timeout: answerTimeoutMs }),
    ...(newSocket === undefined ? {} : { stream: newSocket }),
  })
  // Without listeners a lost connection would end the process. The pool reports an idle connection that is lost. If a connection in use is
  // lost, its next statement fails, so its own event can be ignored.
  pool.on('error', onConnectionLost)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** Returns the name of a database in messages, without the password and the parameters. */
export function nameDatabase(url: string): string {
  const { user, host, port, database } = readAddress(url)
  if (host.startsWith('/')) return `postgres://${user}@/${database} (socket in ${host})`
  return `postgres://${user}@${host.includes(':') ? `[${host}]` : host}:${port}/${database}`
}

/** Reads an address as the driver does. Throws if it cannot be read. */
function readAddress(url: string): Pick<pg.Client, 'user' | 'host' | 'port' | 'database'> {
  try {
    return new pg.Client({ connectionString: url })
  } catch {
    // Leave out the address and the error that quotes it, because they may contain a password.
    throw new Error(
      'store: the address of the database cannot be read. Write postgres://user:password@host:5432/database, with %-escapes in the password.',
    )
  }
}

/**
 * Removes `pgbouncer=true` from an address, because the driver and the server do not know this parameter. It says that the address is of a
 * pooler in transaction mode, which cannot keep prepared (named) statements. `named`: whether the relay may use such statements.
 */
export function takePoolerParameter(url: string): { readonly url: string; readonly named: boolean } {
  const [address = '', query] = url.split(/\?(.*)/s)
  if (query === undefined) return { url, named: true }
  const params = query.split('&')
  const said = params.filter((param) => param.startsWith('pgbouncer='))
  if (said.some((param) => !/=(?:true|false)$/.test(param))) throw new Error('store: pgbouncer in the address must be true or false.')
  const rest = params.filter((param) => !said.includes(param)).join('&')
  return { url: rest === '' ? address : `${address}?${rest}`, named: said.at(-1) !== 'pgbouncer=true' }
}

import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { StorageFailure, systemCode } from '../../core/domain/errors.ts'
import { tlsFaultOf } from '../../core/domain/system-reason.ts'
import type { Session } from '../../core/store/engine.ts'
import type { ReadEngine } from '../../core/store/read-store.ts'
import type { Params, SqlValue, Statement } from '../../core/store/statement.ts'
import { readLastSequence } from './counter.ts'
import { createReadContents } from './history/postgres-contents.ts'
import { bind, compileForPostgres, type PostgresStatement } from './postgres-dialect.ts'
import { endlessConflict, isConflict, isEndless, runningFailure } from './postgres-failure.ts'
import type { WatchedPool } from './server-watch.ts'

export interface PostgresOptions {
  /** Whether connections keep prepared statements by name. Some poolers do not support that. */
  readonly named: boolean
  /** Fails statements when the server has fallen silent; absent: statements wait for the server. */
  readonly watch?: Pick<WatchedPool, 'run'>
}

/** Writes to the database, with as many transactions at a time as there are connections. */
export interface PostgresWriter {
  /**
   * Resolves when the transaction is durable. Rejects when nothing was changed. Also rejects when the connection was lost at the
   * commit: then it is unknown whether anything was changed. `work` runs again after a conflict with another transaction.
   */
  transaction<T>(work: (session: PostgresSession) => Promise<T>): Promise<T>
}

/**
 * The planner settings of every transaction. JIT compilation is off, because older servers rate a plan as very costly if it has to
 * use a method that is off. They would compile such a plan, which takes longer than running it.
 */
export const PLAN_SETTINGS = {
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_mergejoin: 'off',
  enable_hashjoin: 'off',
  jit: 'off',
}

/** How long a transaction may be idle, in milliseconds. After that the server ends it and frees its locks, even if the client's machine is gone. */
export const IDLE_MS_MAX = 2000

/**
 * Begins a transaction with its settings. Behind a pooler each transaction may get another connection, so each transaction sets
 * them. Times are milliseconds.
 *
 * A connection keeps the plans that it made while tables were small. So no plan may read a table or an index from end to end, or sort all
 * waiting rows to find the first. Every statement has an index that finds its rows one by one, in the order in which it needs them.
 */
const BEGIN = begin('read committed', { statement_timeout: 10_000, lock_timeout: 5000, idle_in_transaction_session_timeout: IDLE_MS_MAX })
const BEGIN_READING = begin('repeatable read read only', { statement_timeout: 10_000, idle_in_transaction_session_timeout: IDLE_MS_MAX })

function begin(mode: string, settings: Readonly<Record<string, number>>): string {
  const set = Object.entries({ ...settings, ...PLAN_SETTINGS }).map(([name, value]) => `set local ${name} = ${value}`)
  return [`begin isolation level ${mode}`, ...set].join('; ')
}

const PAUSE_MS_MAX = 20

export function createPostgresWriter(pool: pg.Pool, options: PostgresOptions): PostgresWriter {
  async function once<T>(work: (session: PostgresSession) => Promise<T>, check: () => void): Promise<T> {
    const client = await pool.connect()
    let broken: Error | undefined
    try {
      check()
      return await bracket(client, BEGIN, options, work)
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) broken = error instanceof Error ? error : new Error(String(error))
      throw error
    } finally {
      client.release(isAlive(client) ? undefined : (broken ?? true))
    }
  }
  return {
    transaction: (work) =>
      ask(options, async (check) => {
        for (let attempt = 1; ; attempt++) {
          try {
            return await once(work, check)
          } catch (error) {
            if (!isConflict(error)) throw error
            if (isEndless(error, attempt)) throw endlessConflict(error)
            // Random waits let one of two transactions finish before the other tries again. The waits grow, because many transactions may
            // be in conflict.
            await pause(Math.random() * PAUSE_MS_MAX * Math.min(attempt, 6))
          }
        }
      }),
  }
}

/** Turns every failure of the server into a `StorageFailure`. */
async function ask<T>({ watch }: PostgresOptions, work: (check: () => void) => Promise<T>): Promise<T> {
  try {
    return await (watch === undefined ? work(ignore) : watch.run(work))
  } catch (error) {
    if (error instanceof StorageFailure || !isStorageFailure(error)) throw error
    throw runningFailure(error)
  }
}

/** Whether a client can be used again, because its connection is open and in a known state. */
function isAlive(client: pg.PoolClient): boolean {
  return Reflect.get(client, '_queryable') === true
}

async function bracket<T>(
  client: pg.PoolClient,
  begin: string,
  options: SessionOptions,
  work: (session: PostgresSession) => Promise<T>,
): Promise<T> {
  const runner = sendTogether(client)
  const session = createSession(runner, options)
  // Do not wait for the answer, so that the first statement goes out together with `begin`.
  const begun = runner.query({ text: begin })
  begun.catch(ignore)
  try {
    const result = await work(session)
    const ended = runner.query({ text: 'commit' })
    ended.catch(ignore)
    await session.flush()
    await begun
    // If a statement failed, the server answers the commit with a rollback.
    if ((await ended).command !== 'COMMIT') throw new Error('the transaction was rolled back')
    return result
  } catch (error) {
    const cause = await session.flush().catch((first: unknown) => ({ first }))
    await client.query('rollback').catch(ignore)
    throw cause === undefined ? error : cause.first
  }
}

/** The methods of a client's socket that are used here. The driver's types do not show the socket. */
interface Corked {
  cork(): void
  uncork(): void
}

/** Sends the statements of one turn of the event loop in one write. One system call per statement would cost as much as all other work. */
function sendTogether(client: pg.PoolClient): Runner {
  const connection: unknown = Reflect.get(client, 'connection')
  const stream: unknown = typeof connection === 'object' && connection !== null ? Reflect.get(connection, 'stream') : null
  if (!isCorked(stream)) return client
  let isHeld = false
  return {
    query(query) {
      if (!isHeld) {
        isHeld = true
        stream.cork()
        setImmediate(() => {
          isHeld = false
          stream.uncork()
        })
      }
      return client.query(query)
    },
  }
}

function isCorked(stream: unknown): stream is Corked {
  return typeof stream === 'object' && stream !== null && 'cork' in stream && 'uncork' in stream
}

function ignore(): void {}

/** Classes of error codes that mean a wrong request: data, integrity, syntax. */
const ASKED_WRONG = ['22', '23', '42']
/** The messages of errors without a code, about a failed connection. */
const DRIVER_FAILURE =
  /^(?:Connection terminated|Cannot use a pool after calling end|Client (?:was closed|has encountered a connection error)|timeout e|Query read timeout|the transaction was rolled back)/
/** A code of the operating system, such as `ECONNRESET`. */
const SYSTEM_FAILURE = /^E[A-Z]+$/

/** Whether the database failed, and not the request. A conflict counts as a failure, because the transaction must begin again. */
export function isStorageFailure(error: unknown): boolean {
  if (isConflict(error) || error instanceof StorageFailure) return true
  if (error instanceof pg.DatabaseError) return !ASKED_WRONG.includes((error.code ?? '').slice(0, 2))
  const code = systemCode(error) ?? ''
  return error instanceof Error && (SYSTEM_FAILURE.test(code) || tlsFaultOf(code) !== null || DRIVER_FAILURE.test(error.message))
}

export function createPostgresReader(pool: pg.Pool, options: PostgresOptions): ReadEngine {
  const session = createSession({ query: (query) => ask(options, () => pool.query(query)) }, options)
  return {
    session,
    contents: createReadContents(session),
    snapshot: (work) =>
      ask(options, async () => {
        const client = await pool.connect()
        try {
          return await bracket(client, BEGIN_READING, options, work)
        } finally {
          client.release(isAlive(client) ? undefined : true)
        }
      }),
    lastSequence: readLastSequence,
    close: () => pool.end(),
  }
}

/** A connection, or a pool of connections, that runs queries. */
interface Runner {
  query(query: { readonly name?: string; readonly text: string; readonly values?: SqlValue[] }): Promise<pg.QueryResult>
}

/** A session that sends a write without waiting for the answers to earlier writes. */
export interface PostgresSession extends Session {
  /** Resolves when all enqueued writes are done. Rejects with the first failure of a statement, enqueued or not. */
  flush(): Promise<void>
}

const compiled: PostgresStatement[] = []

/** Compiles a statement, once for all connections. Each connection prepares the statement under the statement's name. */
function compile(statement: Statement<never, unknown>): PostgresStatement {
  const known = compiled[statement.id]
  if (known !== undefined) return known
  const made = compileForPostgres(statement)
  compiled[statement.id] = made
  return made
}

interface SessionOptions {
  /** Whether statements stay prepared on a connection. Some poolers do not support that. */
  readonly named: boolean
}

function createSession(runner: Runner, { named }: SessionOptions): PostgresSession {
  let enqueued: Promise<unknown>[] = []
  let failure: { readonly error: unknown } | null = null

  function send(statement: Statement<never, unknown>, params: Params): Promise<pg.QueryResult> {
    const query = compile(statement)
    const values = bind(query, params)
    const sent = runner.query(named ? { name: query.name, text: query.text, values } : { text: query.text, values })
    // Keep the first failure only: after it, all later statements of the transaction fail too.
    sent.catch((error: unknown) => {
      failure ??= { error }
    })
    return sent
  }

  async function flush(): Promise<void> {
    const sent = enqueued
    enqueued = []
    await Promise.all(sent)
    if (failure !== null) throw failure.error
  }

  return {
    async all<P extends Params, R>(statement: Statement<P, R>, params: P) {
      const { rows } = await send(statement, params)
      // The driver cannot know a row's type; the statement declares it.
      return rows as R[]
    },
    async run(statement, params) {
      const { rowCount } = await send(statement, params)
      return { rows: rowCount ?? 0 }
    },
    enqueueWrite(statement, params) {
      enqueued.push(send(statement, params).catch(() => undefined))
    },
    flush,
  }
}

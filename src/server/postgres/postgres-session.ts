import type pg from 'pg'
import type { Session } from '../../core/store/engine.ts'
import type { Params, SqlValue, Statement } from '../../core/store/statement.ts'
import { bind, compileForPostgres, type PostgresStatement } from './postgres-dialect.ts'

/** A connection, or a pool of connections, that runs queries. */
export interface Runner {
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

export interface SessionOptions {
  /** Whether statements stay prepared on a connection. Some poolers do not support that. */
  readonly named: boolean
}

export function createSession(runner: Runner, { named }: SessionOptions): PostgresSession {
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

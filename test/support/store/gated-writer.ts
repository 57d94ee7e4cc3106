import { expect } from 'vitest'
import type { WriteStore } from '../../../src/core/store/write-store.ts'
import { createPostgresWriter, type PostgresSession, type PostgresWriter } from '../../../src/server/postgres/postgres.ts'
import { createPostgresWriteStore } from '../../../src/server/postgres/postgres-write-store.ts'
import { openTestPool } from './postgres-pool.ts'
import { storedNumber } from './stored-rows.ts'

const WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

/**
 * Returns a function that runs `work` on the store, and starts `other` before statement number `at` of the work. Before this statement, the
 * work waits until `other` has ended or waits for a lock.
 */
export function createBeside(path: string) {
  const pool = openTestPool(path, 4)
  return async <T>(at: number, work: (gated: WriteStore) => Promise<T>, other: () => Promise<unknown>) => {
    const doing: Promise<unknown>[] = []
    const writer = gatedWriter(createPostgresWriter(pool, { named: true }), async (nth) => {
      if (nth !== at) return
      let isOver = false
      const done = other().finally(() => {
        isOver = true
      })
      doing.push(done)
      await expect.poll(async () => isOver || (await storedNumber(path, WAITING)) > 0).toBe(true)
    })
    const result = await work(createPostgresWriteStore(writer))
    await Promise.all(doing)
    return { result, wasReached: doing.length > 0 }
  }
}

/**
 * Wraps a writer so that its transactions stop before each statement until `pass` has resolved. Statements are counted from 0, over all tries
 * of a transaction. Each statement waits for the one before, so that `pass` runs exactly between two statements.
 */
function gatedWriter(writer: PostgresWriter, pass: (nth: number) => Promise<void>): PostgresWriter {
  let nth = 0
  return {
    transaction: (work) =>
      writer.transaction(async (session) => {
        const gated = gate(session, () => pass(nth++))
        const result = await work(gated.session)
        await gated.sent()
        return result
      }),
  }
}

function gate(session: PostgresSession, pass: () => Promise<void>) {
  let last: Promise<unknown> = Promise.resolve()
  function inTurn<T>(send: () => Promise<T>): Promise<T> {
    const sent = last.then(pass).then(send)
    last = sent.catch(() => undefined)
    return sent
  }
  const gated: PostgresSession = {
    all: (statement, params) => inTurn(() => session.all(statement, params)),
    run: (statement, params) => inTurn(() => session.run(statement, params)),
    enqueueWrite(statement, params) {
      // A failure shows when the session is flushed.
      inTurn(async () => session.enqueueWrite(statement, params)).catch(() => undefined)
    },
    async flush() {
      await last
      await session.flush()
    },
  }
  return { session: gated, sent: () => last }
}

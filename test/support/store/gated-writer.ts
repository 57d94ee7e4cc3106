import type { PostgresWriter } from '../../../src/store/postgres/postgres.ts'
import type { PostgresSession } from '../../../src/store/postgres/postgres-session.ts'

/**
 * A writer whose transactions stop before each statement until `pass` has resolved. Statements are counted from 0, over all tries of a
 * transaction. Each waits for the one before, so that work done in `pass` falls exactly between two statements.
 */
export function gatedWriter(writer: PostgresWriter, pass: (nth: number) => Promise<void>): PostgresWriter {
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

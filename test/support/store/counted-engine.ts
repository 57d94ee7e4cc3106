import type { WriteEngine } from '../../../src/core/store/engine.ts'
import type { ReadEngine, ReadSide } from '../../../src/core/store/read-store.ts'
import { createReadStore } from '../../../src/core/store/read-store.ts'

/** The work that a database has done: the numbers of statements, and of rows returned or changed. */
export interface Work {
  statements: number
  rowsRead: number
  rowsWritten: number
}

export function countWork(engine: WriteEngine): { readonly engine: WriteEngine; readonly work: Work } {
  const work: Work = { statements: 0, rowsRead: 0, rowsWritten: 0 }
  const { session } = engine
  return {
    work,
    engine: {
      ...engine,
      session: {
        async all(statement, params) {
          work.statements++
          const rows = await session.all(statement, params)
          work.rowsRead += rows.length
          return rows
        },
        async run(statement, params) {
          work.statements++
          const done = await session.run(statement, params)
          work.rowsWritten += done.rows
          return done
        },
        enqueueWrite(statement, params) {
          work.statements++
          work.rowsWritten++
          session.enqueueWrite(statement, params)
        },
      },
    },
  }
}

/** Reads a store, and counts the statements that it takes outside snapshots. */
export function countReads(engine: ReadEngine): { readonly reads: ReadSide; sent(): number } {
  let sent = 0
  const all: ReadEngine['session']['all'] = (statement, params) => {
    sent++
    return engine.session.all(statement, params)
  }
  return { reads: createReadStore({ ...engine, session: { ...engine.session, all } }), sent: () => sent }
}

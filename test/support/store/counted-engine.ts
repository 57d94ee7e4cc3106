import type { WriteEngine } from '../../../src/store/engine.ts'

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

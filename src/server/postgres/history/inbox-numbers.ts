import { sql } from 'kysely'
import type { Session } from '../../../core/store/engine.ts'
import { rawStatement } from '../raw-statement.ts'

/** The database's sequence advances by this much at a time, so each of its values begins a run of this many inbox ids. */
const RUN = 10_000

const takeRun = rawStatement()(() => sql<{ first: number }>`select nextval('inbox_numbers') as first`)

/** Assigns inbox ids. A replica takes a run of numbers from the database and uses it up before it takes the next, to leave few gaps. */
export interface InboxNumbers {
  /** Reserves `count` consecutive numbers and resolves with the first. */
  take(session: Session, count: number): Promise<number>
}

export function createInboxNumbers(): InboxNumbers {
  let [next, end] = [0, 0]
  return {
    async take(session, count) {
      if (end - next < count) {
        // If two batches take a run at the same time, the rest of one run stays unused.
        const [row] = await session.all(takeRun, {})
        if (row === undefined) throw new Error('the sequence of the inbox gave no number')
        ;[next, end] = [row.first, row.first + RUN]
      }
      const first = next
      next += count
      return first
    },
  }
}

import { sql } from 'kysely'
import type { Session } from '../../engine.ts'
import { rawStatement } from '../raw-statement.ts'

/** The database's sequence advances by this much. So each of its values stands for this many numbers. */
const RUN = 10_000

const takeRun = rawStatement()(() => sql<{ first: number }>`select nextval('inbox_numbers') as first`)

/** Gives inbox ids. A replica takes a run of numbers and uses all of them, so that there are few gaps. */
export interface InboxNumbers {
  /** Reserves `count` consecutive numbers and resolves with the first. */
  take(session: Session, count: number): Promise<number>
}

export function createInboxNumbers(): InboxNumbers {
  let [next, end] = [0, 0]
  return {
    async take(session, count) {
      if (end - next < count) {
        const [row] = await session.all(takeRun, {})
        if (row === undefined)
          throw new Error('the sequence of the inbox gave no number')
          // Another batch may have taken a run meanwhile. The rest of that run stays unused.
        ;[next, end] = [row.first, row.first + RUN]
      }
      const first = next
      next += count
      return first
    },
  }
}

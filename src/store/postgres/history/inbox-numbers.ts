import { sql } from 'kysely'
import type { Session } from '../../engine.ts'
import { rawStatement } from '../raw-statement.ts'

/** How many numbers the sequence gives at a time; it goes in steps of as many. */
const RUN = 10_000

const takeRun = rawStatement()(() => sql<{ first: number }>`select nextval('inbox_numbers') as first`)

/** Numbers that pushes are kept under. A replica takes a run of them and uses it up, so that there are few gaps. */
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
          // Another batch may have taken a run meanwhile: what is left of that one is not used.
        ;[next, end] = [row.first, row.first + RUN]
      }
      const first = next
      next += count
      return first
    },
  }
}

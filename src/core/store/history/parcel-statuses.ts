import { sql } from 'kysely'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

/** The most statuses in the table, because a carrier may invent a new status for every parcel. */
const STATUSES_MAX = 1000

const insertStatus = statement<{ status: string }>()((db, p) =>
  db
    .insertInto('parcel_status')
    .columns(['status'])
    .expression((of) =>
      of
        .selectFrom(sql<{ count: number }>`(select count(*) as count from parcel_status)`.as('kept'))
        .select(sql<string>`${p.status}`.as('status'))
        .where('kept.count', '<', sql.lit(STATUSES_MAX)),
    )
    .onConflict((conflict) => conflict.doNothing()),
)
const allStatuses = statement()((db) => db.selectFrom('parcel_status').select('status').orderBy('status'))

/** Stores each status that has been the latest of a parcel. A cache avoids writing a status twice. */
export interface ParcelStatuses {
  note(status: string): void
  /** Clears the cache. Call it after a rollback. */
  forget(): void
}

export function createParcelStatuses(session: Session): ParcelStatuses {
  const noted = new Set<string>()
  return {
    note(status) {
      if (noted.has(status)) return
      if (noted.size >= STATUSES_MAX) noted.clear()
      noted.add(status)
      session.enqueueWrite(insertStatus, { status })
    },
    forget: () => noted.clear(),
  }
}

export async function listStatuses(session: Session): Promise<readonly string[]> {
  return (await session.all(allStatuses, {})).map(({ status }) => status)
}

import { sql } from 'kysely'
import type { EventValue } from '../../domain/delivery/plan-events.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import type { Tables } from '../tables.ts'

/** The most values stored for one member of events, because a carrier may invent a new value for every event. */
export const EVENT_VALUES_MAX = 1000

const insertValue = statement<Tables['event_value']>()((db, p) =>
  db
    .insertInto('event_value')
    .columns(['member', 'value'])
    .expression((of) =>
      of
        .selectFrom(sql<{ count: number }>`(select count(*) as count from event_value where member = ${p.member})`.as('kept'))
        .select([sql<EventValue['member']>`${p.member}`.as('member'), sql<string>`${p.value}`.as('value')])
        .where('kept.count', '<', sql.lit(EVENT_VALUES_MAX)),
    )
    .onConflict((conflict) => conflict.doNothing()),
)
const allValues = statement()((db) => db.selectFrom('event_value').select(['member', 'value']).orderBy('member').orderBy('value'))

/** Stores each value that a member of an event has had. A cache avoids writing a value twice. */
export interface EventValues {
  note(value: EventValue): void
  /** Clears the cache. Call it after a rollback. */
  forget(): void
}

export function createEventValues(session: Session): EventValues {
  const noted = new Set<string>()
  return {
    note(value) {
      const key = eventValueKey(value)
      if (noted.has(key)) return
      if (noted.size >= 2 * EVENT_VALUES_MAX) noted.clear()
      noted.add(key)
      session.enqueueWrite(insertValue, { member: value.member, value: value.value })
    },
    forget: () => noted.clear(),
  }
}

export function eventValueKey({ member, value }: EventValue): string {
  return `${member} ${value}`
}

export async function listEventValues(session: Session): Promise<readonly EventValue[]> {
  return await session.all(allValues, {})
}

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
interface ParcelStatuses {
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

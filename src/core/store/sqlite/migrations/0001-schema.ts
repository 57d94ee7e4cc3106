import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { renderFirstStep } from '../../first-step.ts'

const WITHOUT_ROWID = [
  'parcel_status',
  'event_value',
  'identifier',
  'sighting',
  'tombstone',
  'failure',
  'trouble',
  'refused_pushes',
  'tally',
]

const STATEMENTS = [
  ...renderFirstStep({
    name: 'sqlite',
    types: { big: 'integer', int: 'integer', small: 'integer', text: 'text', bytes: 'blob' },
    arrange: (_, columns) => columns,
    endings: Object.fromEntries(WITHOUT_ROWID.map((table) => [table, 'without rowid'])),
  }),
  'create index inbox_unrecorded on inbox (parcel_id, received_at_ms) where parcel_id = 0',
]

export const schema: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    // The driver takes one statement at a time.
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}

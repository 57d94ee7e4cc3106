import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Adds which form of the portal gave an order, so that a form that is sent twice gives it once; and the sessions that were logged out. */
const STEPS = [
  'alter table operator_action add column form text',
  'alter table operator_action add column form_detail text',
  'create unique index operator_action_by_form on operator_action (form) where form is not null',
  'create index operator_action_by_form_detail on operator_action (at_ms) where form_detail is not null',
  'create table ended_session (session text primary key, until_ms integer not null) without rowid',
]

export const onceOnlyForms: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const step of STEPS) await sql.raw(step).execute(db)
  },
}

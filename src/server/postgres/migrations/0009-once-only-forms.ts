import { type Kysely, sql } from 'kysely'

/** Adds which form of the portal gave an order, so that a form that is sent twice gives it once; and the sessions that were logged out. */
const STEPS = `
alter table operator_action add column form TEXT, add column form_detail TEXT;
create unique index operator_action_by_form on operator_action (form) where form is not null;
create index operator_action_by_form_detail on operator_action (at_ms) where form_detail is not null;
create table ended_session (session TEXT primary key, until_ms bigint not null)`

export const onceOnlyForms = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql.raw(STEPS.replaceAll('TEXT', 'text collate "C"')).execute(db)
  },
}

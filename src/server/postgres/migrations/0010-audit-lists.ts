import { type Kysely, sql } from 'kysely'

/**
 * The indexes by which the audit trail is listed: by who, by what, by both, and by what an order is about. See `store/admin/action-lists.ts`. They
 * leave out long names, because PostgreSQL refuses a row that is too long for an index.
 */
const STEPS = `
create index operator_action_by_name on operator_action (by_name, at_ms, id) where length(by_name) <= 200;
create index operator_action_by_action on operator_action (action, at_ms, id);
create index operator_action_by_both on operator_action (by_name, action, at_ms, id) where length(by_name) <= 200;
create index operator_action_by_target on operator_action (target_kind, target, at_ms, id) where length(target) <= 200`

export const auditLists = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql.raw(STEPS).execute(db)
  },
}

import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { text } from './text.ts'

/**
 * Several relays on one database. A relay of the version before believes that it is alone; it loses its lease, which ends it, and cannot be started
 * again (`servesFrom`).
 */
export const replicas: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createReplica(db)
    await createRole(db)
    await createFencedReplica(db)
    await sql`insert into counter (name, value, base, version) values ('roles', 0, 0, 0), ('orders', 0, 0, 0)`.execute(db)
    await sql`delete from lease where role = 'relay'`.execute(db)
  },
}

/** A relay from its start until it stops or is no longer seen. Whoever deletes its row has fenced it: its roles fall free with it. */
async function createReplica(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('replica')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('started_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('seen_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('until_ms', 'bigint', (column) => column.notNull())
    .addColumn('name', text, (column) => column.notNull())
    .addColumn('version', text, (column) => column.notNull())
    .addColumn('fingerprint', text, (column) => column.notNull())
    // The names of the endpoints in its config, as JSON.
    .addColumn('endpoints', text, (column) => column.notNull())
    // The names of its keys at rest, as JSON; the first encrypts.
    .addColumn('keys', text, (column) => column.notNull())
    // Updated every second: the room keeps its versions on one page.
    .modifyEnd(sql`with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0)`)
    .execute()
}

async function createRole(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('role')
    .addColumn('replica_id', 'bigint', (column) => column.notNull().references('replica.id').onDelete('cascade'))
    .addColumn('name', text, (column) => column.primaryKey())
    .execute()
  await db.schema.createIndex('role_by_replica').on('role').column('replica_id').execute()
}

/** The endpoints that the configs of replicas named which were declared dead: they are kept until then, since the replica may come back. */
async function createFencedReplica(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('fenced_replica')
    .addColumn('until_ms', 'bigint', (column) => column.notNull())
    .addColumn('endpoints', text, (column) => column.notNull())
    .execute()
}

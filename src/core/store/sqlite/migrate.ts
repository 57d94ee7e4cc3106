import type Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { describeFailure } from '../../domain/system-reason.ts'
import { BACKFILL_ROWS, type Backfill, MADE_UNRELEASED } from '../first-step.ts'
import * as steps from './migrations/steps.ts'

export interface SqliteStep extends Migration {
  readonly backfill?: Backfill
}

/** Only append to this list: after the first release, a released step never changes (decision 0004). */
export const MIGRATIONS: Readonly<Record<string, SqliteStep>> = {
  '0001-schema': steps.schema,
  '0002-erasing': steps.erasing,
  '0004-lasting-order': steps.lastingOrder,
  '0007-began': steps.began,
  '0008-pace': steps.pace,
  '0009-once-only-forms': steps.onceOnlyForms,
  '0010-audit-lists': steps.auditLists,
  '0012-renumbered-events': steps.renumberedEvents,
  '0013-expected-by-parcel': steps.expectedByParcel,
  '0015-order-context': steps.orderContext,
  '0016-carrier-report': steps.carrierReport,
  '0017-overwritten': steps.overwritten,
  '0018-watchdogs': steps.watchdogs,
  '0019-told-by-watchdogs': steps.toldByWatchdogs,
}

/** The name of the first step in versions before the first release. */
const UNRELEASED = '0001-initial'

/** A setting whose value is the name of the step whose backfill is under way. Without a backfill the setting does not exist. */
const BACKFILLING = 'backfilling'

/**
 * Brings a database up to date. One transaction takes all missing steps up to the next step that has a backfill.
 *
 * A backfill runs in batches, each in a transaction, so that the WAL stays small. If the relay is killed, the next start continues after the
 * last batch.
 *
 * Throws for a database of a newer version, and leaves it unchanged.
 */
export async function migrate(db: Database.Database, migrations: Readonly<Record<string, SqliteStep>> = MIGRATIONS): Promise<void> {
  // Do not destroy this Kysely, because that would close the database.
  const kysely = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) })
  try {
    await kysely.connection().execute(async (connection) => {
      for (let isDone = false; !isDone; ) {
        isDone = await inTransaction(connection, () => advance(connection, migrations))
        if (!isDone) db.pragma('wal_checkpoint(PASSIVE)')
      }
    })
  } catch (error) {
    throw new Error(`store: ${db.name} cannot be migrated to the schema of this version: ${describe(error)}`, { cause: error })
  }
}

/** Runs work in a transaction that takes the write lock first. Kysely's migrator itself takes no lock on SQLite. */
async function inTransaction<T>(db: Kysely<unknown>, work: () => Promise<T>): Promise<T> {
  await sql`BEGIN IMMEDIATE`.execute(db)
  try {
    const result = await work()
    await sql`COMMIT`.execute(db)
    return result
  } catch (error) {
    await sql`ROLLBACK`.execute(db)
    throw error
  }
}

/** Runs one batch of the backfill that is under way, or takes the next steps. Returns whether everything is done. */
async function advance(db: Kysely<unknown>, migrations: Readonly<Record<string, SqliteStep>>): Promise<boolean> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...migrations }) } })
  const pending = (await migrator.getMigrations()).filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name)
  const [first] = pending
  const isNew = first !== undefined && first === Object.keys(migrations).toSorted()[0]
  const backfill = isNew ? undefined : migrations[(await readBackfilling(db)) ?? '']?.backfill
  if (backfill !== undefined) {
    const filled = await backfill(db, BACKFILL_ROWS)
    if (filled === 0) await sql`delete from setting where name = ${BACKFILLING}`.execute(db)
    return filled === 0 && pending.length === 0
  }
  const target = pending.find((name) => migrations[name]?.backfill !== undefined)
  const { error } = target === undefined ? await migrator.migrateToLatest() : await migrator.migrateTo(target)
  if (error !== undefined) throw error instanceof Error ? error : new Error('the migrator failed', { cause: error })
  if (target === undefined) return true
  await sql`insert into setting (name, value) values (${BACKFILLING}, ${Buffer.from(target)})`.execute(db)
  return false
}

async function readBackfilling(db: Kysely<unknown>): Promise<string | null> {
  const { rows } = await sql<{ readonly value: Uint8Array }>`select value from setting where name = ${BACKFILLING}`.execute(db)
  return rows[0] === undefined ? null : Buffer.from(rows[0].value).toString()
}

/** Throws if a database has taken steps that this version does not know. Changes nothing. */
export function refuseOtherSchema(db: Database.Database, migrations = MIGRATIONS): void {
  const isMigrated = db.prepare("select 1 from sqlite_schema where type = 'table' and name = 'kysely_migration'").get() !== undefined
  const taken = isMigrated ? db.prepare('select name from kysely_migration').pluck().all().map(String) : []
  const unknown = taken.find((name) => !Object.hasOwn(migrations, name))
  if (unknown === UNRELEASED) throw new Error(`store: ${db.name} cannot be used: ${MADE_UNRELEASED}`)
  if (unknown !== undefined) throw new Error(`store: ${db.name} cannot be used: it was made by a newer version (${unknown})`)
}

function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (message.includes(UNRELEASED)) return MADE_UNRELEASED
  return message.includes('is missing') ? `it was made by a newer one (${message})` : describeFailure(error)
}

import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { Pool } from 'pg'
import { systemCode } from '../../core/domain/errors.ts'
import { BACKFILL_ROWS, type Backfill, MADE_UNRELEASED } from '../../core/store/first-step.ts'
import * as steps from './migrations/postgres-steps.ts'
import { IDLE_MS_MAX } from './postgres.ts'

/** One step of the schema's history. A schema's number is the count of its steps. Each version of the relay is made for one schema. */
export interface SchemaStep {
  /**
   * The schema number of the oldest version of the relay that still works after this step. A step that only adds (expand) repeats the
   * `servesFrom` of the step before, because older versions ignore additions. Step 7, if it removes something (contract), has 7. Release it only
   * after a version that no longer uses what it removes.
   */
  readonly servesFrom: number
  readonly up: Migration['up']
  readonly backfill?: Backfill
}

/** Only append to this list: after the first release, a released step never changes (decision 0004). */
export const STEPS: readonly SchemaStep[] = [
  { servesFrom: 1, up: steps.schema.up },
  { servesFrom: 1, up: steps.erasing.up },
  { servesFrom: 1, up: steps.lastingOrder.up },
  { servesFrom: 1, up: steps.began.up },
  { servesFrom: 1, up: steps.pace.up },
  { servesFrom: 1, up: steps.onceOnlyForms.up },
  { servesFrom: 1, up: steps.auditLists.up },
  { servesFrom: 1, up: steps.renumberedEvents.up },
  { servesFrom: 1, up: steps.expectedByParcel.up },
  { servesFrom: 1, up: steps.replicaConcerns.up },
  { servesFrom: 1, up: steps.orderContext.up },
  { servesFrom: 1, up: steps.carrierReport.up },
  { servesFrom: 1, up: steps.overwritten.up },
  { servesFrom: 1, up: steps.watchdogs.up },
  { servesFrom: 1, up: steps.toldByWatchdogs.up },
]

/** The most attempts. If several replicas create the table `schema_version` at once, all but one fail, and find it at the next attempt. */
const LOOKS_MAX = 5

const UNDEFINED_TABLE = '42P01'
const UNDEFINED_COLUMN = '42703'
const MADE_BY_ANOTHER = ['23505', '42P07']

interface Versions {
  /** `backfilling`: 1 while the backfill of the last step has not ended. */
  readonly schema_version: { readonly id: number; readonly version: number; readonly serves_from: number; readonly backfilling: number }
}

/**
 * Brings a database up to date. Each transaction takes the missing steps, up to and including the first one with a backfill, or runs one batch
 * of a backfill. Older replicas can work between the batches. If the relay is killed, the next start continues the backfill.
 *
 * If several replicas start together, one takes the steps, and the others wait for the lock of the row in `schema_version`. Rejects if a newer
 * version of the relay has taken a step after which this version does not work. `name` names the database in messages.
 */
export async function migratePostgres(pool: Pool, name: string, steps: readonly SchemaStep[] = STEPS): Promise<void> {
  // Do not destroy this: Kysely would end the pool, which the caller still needs.
  const db = new Kysely<Versions>({ dialect: new PostgresDialect({ pool }) })
  for (let failures = 0; ; ) {
    try {
      if (isUpToDate(await readVersion(db, name), steps.length, name)) return
      await db
        .transaction()
        .setIsolationLevel('read committed')
        .setAccessMode('read write')
        .execute((tx) => advance(tx, steps, name))
    } catch (error) {
      failures += 1
      if (failures < LOOKS_MAX && MADE_BY_ANOTHER.includes(systemCode(error) ?? '')) continue
      throw describe(error, name)
    }
  }
}

/** Tells which version's tables a database has. Rejects if a newer version of the relay made them and this version cannot use them. */
export async function inspectSchema(pool: Pool, place: string): Promise<'none' | 'older' | 'current'> {
  const found = await readVersion(new Kysely<Versions>({ dialect: new PostgresDialect({ pool }) }), place)
  if (found === null) return 'none'
  return isUpToDate(found, STEPS.length, place) ? 'current' : 'older'
}

interface Version {
  readonly version: number
  readonly serves_from: number
  readonly backfilling: number
}

/** Whether the database was made before the first release. No released version has the column `told`. */
const isUnreleased = sql<boolean>`exists (
  select from information_schema.columns where table_schema = current_schema() and table_name = 'sighting' and column_name = 'told')`.as(
  'unreleased',
)

/** Null: the database has no tables of the relay yet. */
async function readVersion(db: Kysely<Versions>, name: string): Promise<Version | null> {
  try {
    const found = await db.selectFrom('schema_version').select(['version', 'serves_from', 'backfilling', isUnreleased]).executeTakeFirst()
    if (found?.unreleased === true) throw unreleased(name)
    return found ?? null
  } catch (error) {
    if (systemCode(error) === UNDEFINED_TABLE) return null
    if (systemCode(error) === UNDEFINED_COLUMN) throw unreleased(name)
    throw error
  }
}

function unreleased(name: string): Error {
  return new Error(`store: ${name} cannot be used: ${MADE_UNRELEASED}`)
}

function isUpToDate(found: Version | null, schema: number, name: string): boolean {
  if (found === null || found.version < schema || (found.version === schema && found.backfilling !== 0)) return false
  if (schema >= found.serves_from) return true
  throw new Error(
    `store: ${name} has schema ${found.version}, made by a newer version of the relay, and serves versions from schema ${found.serves_from} on; ` +
      `this version has schema ${schema}. Nothing was changed. Start a version as new as the one that made it, or restore a backup from before.`,
  )
}

async function advance(tx: Transaction<Versions>, steps: readonly SchemaStep[], name: string): Promise<void> {
  await sql`set local statement_timeout = 0`.execute(tx)
  await sql`set local lock_timeout = 0`.execute(tx)
  await sql`set local idle_in_transaction_session_timeout = ${sql.lit(IDLE_MS_MAX)}`.execute(tx)
  await tx.schema
    .createTable('schema_version')
    .ifNotExists()
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('version', 'integer', (column) => column.notNull())
    .addColumn('serves_from', 'integer', (column) => column.notNull())
    .addColumn('backfilling', 'integer', (column) => column.notNull())
    .execute()
  await tx
    .insertInto('schema_version')
    .values({ id: 1, version: 0, serves_from: 0, backfilling: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  // A second replica waits here for the lock, and then reads the version that the first has written.
  const found = await tx
    .selectFrom('schema_version')
    .select(['version', 'serves_from', 'backfilling'])
    .forUpdate()
    .executeTakeFirstOrThrow()
  if (isUpToDate(found, steps.length, name)) return
  const backfill = found.backfilling === 0 ? undefined : steps[found.version - 1]?.backfill
  if (backfill !== undefined) {
    if ((await backfill(tx, BACKFILL_ROWS)) === 0) await tx.updateTable('schema_version').set({ backfilling: 0 }).execute()
    return
  }
  const pending = steps.slice(found.version)
  const filled = pending.findIndex((step) => step.backfill !== undefined)
  const taken = filled < 0 ? pending : pending.slice(0, filled + 1)
  for (const step of taken) await step.up(tx)
  const servesFrom = Math.max(found.serves_from, ...taken.map((step) => step.servesFrom))
  const version = found.version + taken.length
  await tx
    .updateTable('schema_version')
    .set({ version, serves_from: servesFrom, backfilling: filled < 0 ? 0 : 1 })
    .execute()
}

const INSUFFICIENT_PRIVILEGE = '42501'

function describe(error: unknown, name: string): unknown {
  const message = error instanceof Error ? error.message : String(error)
  if (message.startsWith('store: ')) return error
  if (systemCode(error) === INSUFFICIENT_PRIVILEGE) {
    return new Error(
      `store: the relay's user may not make its tables in ${name} (${message}). Nothing was changed. Make that user the owner of the database ` +
        '(ALTER DATABASE ... OWNER TO ...), or allow it to (GRANT CREATE ON SCHEMA public TO ...).',
      { cause: error },
    )
  }
  // Do not say that nothing was changed, because the connection may have been lost at the commit.
  const what = `store: ${name} cannot be brought to the schema of this version: ${message}.`
  return new Error(`${what} Either all its steps are taken or none. Remove the cause, then start the relay again.`, { cause: error })
}

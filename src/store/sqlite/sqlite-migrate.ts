import type Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { initial } from './migrations/0001-initial.ts'
import { relaying } from './migrations/0002-relaying.ts'
import { feedJoins } from './migrations/0003-feed-joins.ts'
import { parcelLists } from './migrations/0004-parcel-lists.ts'
import { told } from './migrations/0005-told.ts'
import { uniqueParcelIds } from './migrations/0006-unique-parcel-ids.ts'
import { listings } from './migrations/0007-listings.ts'
import { deliveries } from './migrations/0008-deliveries.ts'
import { failingEndpoints } from './migrations/0009-failing-endpoints.ts'
import { expiredPushes } from './migrations/0010-expired-pushes.ts'
import { parcelStatuses } from './migrations/0011-parcel-statuses.ts'
import { carrierTimes } from './migrations/0014-carrier-times.ts'
import { refusals } from './migrations/0017-refusals.ts'
import { skipped } from './migrations/0018-skipped.ts'
import { learnt } from './migrations/0019-learnt.ts'
import { operatorEvents } from './migrations/0020-operator-events.ts'
import { deliveriesByTime } from './migrations/0022-deliveries-by-time.ts'
import { operatorsView } from './migrations/0023-operators-view.ts'

import { tallies } from './migrations/0024-tallies.ts'

import { inboxByReason } from './migrations/0025-inbox-by-reason.ts'

/** Append only: never change a released migration. */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-initial': initial,
  '0002-relaying': relaying,
  '0003-feed-joins': feedJoins,
  '0004-parcel-lists': parcelLists,
  '0005-told': told,
  '0006-unique-parcel-ids': uniqueParcelIds,
  '0007-listings': listings,
  '0008-deliveries': deliveries,
  '0009-failing-endpoints': failingEndpoints,
  '0010-expired-pushes': expiredPushes,
  '0011-parcel-statuses': parcelStatuses,
  '0014-carrier-times': carrierTimes,
  '0017-refusals': refusals,
  '0018-skipped': skipped,
  '0019-learnt': learnt,
  '0020-operator-events': operatorEvents,
  '0022-deliveries-by-time': deliveriesByTime,
  '0023-operators-view': operatorsView,
  '0024-tallies': tallies,
  '0025-inbox-by-reason': inboxByReason,
}

/**
 * Migrates a database, or leaves it unchanged. On SQLite the migrator uses neither transactions nor locks, so all migrations run in one
 * transaction that takes the write lock first. Refuses a database of a newer version.
 */
export async function migrate(db: Database.Database): Promise<void> {
  // This Kysely is not destroyed, because that would close the database.
  const kysely = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) })
  await kysely.connection().execute(async (connection) => {
    await sql`BEGIN IMMEDIATE`.execute(connection)
    const migrator = new Migrator({ db: connection, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } })
    const { error } = await migrator.migrateToLatest()
    if (error === undefined) {
      await sql`COMMIT`.execute(connection)
      return
    }
    await sql`ROLLBACK`.execute(connection)
    throw new Error(`store: ${db.name} cannot be migrated to the schema of this version: ${describe(error)}`, { cause: error })
  })
}

function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.includes('is missing') ? `it was made by a newer one (${message})` : message
}

import { join } from 'node:path'
import Database from 'better-sqlite3'
import { sql } from 'kysely'
import type { Pool } from 'pg'
import { expect, test } from 'vitest'
import { migrate } from '../../../src/core/store/sqlite/migrate.ts'
import { migratePostgres, type SchemaStep, STEPS } from '../../../src/server/postgres/postgres-migrate.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase, sharedServer } from '../../support/store/postgres-database.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'

const PLACE = 'postgres://relay@db:5432/relay'

const CURRENT = { version: STEPS.length, serves_from: Math.max(...STEPS.map(({ servesFrom }) => servesFrom)) }

async function openEmpty(): Promise<Pool> {
  return openTestPool((await createDatabase('nothing')).url)
}

async function versionOf(pool: Pool): Promise<unknown> {
  return (await pool.query('select version, serves_from from schema_version')).rows
}

async function tablesOf(pool: Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string }>("select tablename as name from pg_tables where schemaname = 'public' order by 1")
  return rows.map(({ name }) => name)
}

test('a new database gets the tables, columns and indexes that SQLite has', async () => {
  const db = new Database(join(temporaryFolder(), 'relay.db'))
  await migrate(db)
  const expected = db
    .prepare(
      `select t.name || '.' || c.name || case when c."notnull" or c.pk then '' else '?' end from sqlite_master t join pragma_table_info(t.name) c
       where t.type = 'table' and t.name not like 'kysely%' and t.name not like 'sqlite%' order by 1`,
    )
    .pluck()
    .all()
  const indexes = db.prepare("select name from sqlite_master where type = 'index' and sql is not null").pluck().all()
  db.close()

  const pool = await openEmpty()
  await migratePostgres(pool, PLACE)
  const { rows: columns } = await pool.query<{ name: string }>(
    `select table_name || '.' || column_name || case is_nullable when 'YES' then '?' else '' end as name from information_schema.columns
     where table_schema = 'public' and table_name not in ('schema_version', 'counter', 'lease', 'replica', 'role', 'fenced_replica', 'lesson', 'carrier_budget', 'carrier_token', 'flight')`,
  )
  // Replicas compare `parcel.version` to see whether their caches are current. Only one process uses a SQLite store, so it needs no versions.
  const names = columns.map(({ name }) => name).sort()
  expect(names).toContain('parcel.version')
  expect(names.filter((name) => name !== 'parcel.version')).toEqual(expected)
  const made = await pool.query<{ name: string }>("select indexname as name from pg_indexes where schemaname = 'public'")
  expect(made.rows.map(({ name }) => name)).toEqual(expect.arrayContaining(indexes))
  expect((await pool.query('select name, value, base, version from counter order by name')).rows).toEqual(
    ['orders', 'polls', 'roles', 'sequence', 'settings'].map((name) => ({ name, value: 0, base: 0, version: 0 })),
  )
})

test('texts are compared by their bytes, and times, ids and sequences have 64 bits', async () => {
  const pool = openTestPool((await createDatabase()).url)
  const { rows } = await pool.query<{ name: string; type: string; collation: string | null }>(
    `select column_name as name, data_type as type, collation_name as collation from information_schema.columns
     where table_schema = 'public' and table_name != 'schema_version'`,
  )
  expect(rows.filter(({ type, collation }) => type === 'text' && collation !== 'C')).toEqual([])
  const wide = rows.filter(({ name }) => /(?:_ms|^id|_id|sequence|audience|^entry|^payload_ref)$/.test(name) && !/^(?:has|is)_/.test(name))
  expect(wide.length).toBeGreaterThan(50)
  expect(wide.filter(({ type }) => type !== 'bigint')).toEqual([])
  await pool.query("insert into identifier (value, parcel_id, is_tracking_id) values ('a', 1, 0), ('B', 1, 0), ('~', 1, 0), ('é', 1, 0)")
  const ordered = await pool.query<{ value: string }>('select value from identifier order by value')
  expect(ordered.rows.map(({ value }) => value)).toEqual(['B', 'a', '~', 'é'])
})

test('an observation that does not change a parcel’s schedule writes to no index', async () => {
  const pool = openTestPool((await createDatabase()).url, 1)
  await pool.query('insert into parcel (id, activated_at_ms, entry_count, failures, next_poll_at_ms, is_full) values (7, 0, 0, 0, 5, 0)')
  await pool.query('begin')
  await pool.query("update parcel set entry_count = 1, latest_status = 'x', latest_at_ms = 9, last_seen_at_ms = 9 where id = 7")
  const { rows } = await pool.query("select pg_stat_get_xact_tuples_hot_updated('parcel'::regclass) as hot")
  await pool.query('rollback')
  expect(rows).toEqual([{ hot: 1 }])
})

test('a status too long for an ordinary index is stored once', async () => {
  const pool = openTestPool((await createDatabase()).url)
  const status = Array.from({ length: 3000 }, (_, at) => String.fromCodePoint(0x4e00 + ((at * 7919) % 20_000))).join('')
  for (let time = 0; time < 2; time++) {
    await pool.query('insert into parcel_status (status) values ($1) on conflict do nothing', [status])
  }
  expect((await pool.query('select status from parcel_status')).rows).toEqual([{ status }])
})

test('only one of the replicas that start on a new database creates the schema', async () => {
  for (let time = 0; time < byForm(1, 3); time++) {
    const { url } = await createDatabase('nothing')
    const pools = Array.from({ length: 4 }, () => openTestPool(url, 1))
    await Promise.all(pools.map((pool) => migratePostgres(pool, PLACE)))
    for (const pool of pools) {
      expect(await versionOf(pool)).toEqual([CURRENT])
      expect((await pool.query('select count(*) as count from counter')).rows).toEqual([{ count: 5 }])
    }
  }
})

const planted = (servesFrom: number): SchemaStep => ({
  servesFrom,
  up: (db) => db.schema.alterTable('parcel').addColumn(`planted_${servesFrom}`, 'bigint').execute(),
})
/** The steps of a later version of the relay. They add a column that this version ignores. */
const EXPANDED = [...STEPS, planted(CURRENT.serves_from)]
const AFTER_EXPANDED = { ...CURRENT, version: CURRENT.version + 1 }
/** The steps of a still later version, whose schema this version cannot use. */
const CONTRACTED = [...EXPANDED, planted(AFTER_EXPANDED.version)]
const AFTER_CONTRACTED = { version: CURRENT.version + 2, serves_from: AFTER_EXPANDED.version }

test('during a rolling upgrade the older version starts on the newer one’s expanded schema', async () => {
  const pool = await openEmpty()
  await migratePostgres(pool, PLACE)
  await migratePostgres(pool, PLACE, EXPANDED)
  await migratePostgres(pool, PLACE)
  expect(await versionOf(pool)).toEqual([AFTER_EXPANDED])
})

test('S14: a schema too new for this version is left alone, and the error names both versions', async () => {
  const pool = await openEmpty()
  await migratePostgres(pool, PLACE, CONTRACTED)
  await expect(migratePostgres(pool, PLACE)).rejects.toThrow(
    `store: postgres://relay@db:5432/relay has schema ${AFTER_CONTRACTED.version}, made by a newer version of the relay, and serves versions from schema ${AFTER_EXPANDED.version} on; this version has ` +
      `schema ${CURRENT.version}. Nothing was changed. Start a version as new as the one that made it, or restore a backup from before.`,
  )
  await migratePostgres(pool, PLACE, EXPANDED)
  expect(await versionOf(pool)).toEqual([AFTER_CONTRACTED])
})

test('older and newer versions that start together take each step once', async () => {
  const { url } = await createDatabase('nothing')
  const pools = Array.from({ length: 4 }, () => openTestPool(url, 1))
  await Promise.all(pools.map((pool, at) => migratePostgres(pool, PLACE, at % 2 === 0 ? STEPS : EXPANDED)))
  expect(await versionOf(openTestPool(url))).toEqual([AFTER_EXPANDED])
})

test('S14: a migration that fails half way leaves the database as it was', async () => {
  const failing: SchemaStep = { servesFrom: CURRENT.serves_from, up: async (db) => void (await sql`select 1 / 0`.execute(db)) }
  const fresh = await openEmpty()
  await expect(migratePostgres(fresh, PLACE, [...EXPANDED, failing])).rejects.toThrow(
    'store: postgres://relay@db:5432/relay cannot be brought to the schema of this version: division by zero. Either all its steps',
  )
  expect(await tablesOf(fresh)).toEqual([])

  const pool = openTestPool((await createDatabase()).url)
  await expect(migratePostgres(pool, PLACE, [...EXPANDED, failing])).rejects.toThrow('division by zero')
  expect(await versionOf(pool)).toEqual([CURRENT])
  await migratePostgres(pool, PLACE, EXPANDED)
  expect(await versionOf(pool)).toEqual([AFTER_EXPANDED])
})

/** Adds a column, and fills it in batches. `fail` is called before each batch. */
function filled(fail: () => void): SchemaStep {
  return {
    servesFrom: CURRENT.serves_from,
    up: (db) => db.schema.alterTable('parcel').addColumn('planted', 'bigint').execute(),
    async backfill(db, rows) {
      fail()
      const found =
        await sql`update parcel set planted = id where id in (select id from parcel where planted is null order by id limit ${rows})`.execute(
          db,
        )
      return Number(found.numAffectedRows ?? 0)
    },
  }
}

test('S14: replicas share a backfill; if one fails, another continues, and later steps wait', async () => {
  const { url } = await createDatabase()
  const pool = openTestPool(url)
  const count = byForm(12_000, 1_000_000)
  await pool.query(
    `insert into parcel (id, activated_at_ms, entry_count, failures, is_full) select n, 0, 0, 0, 0 from generate_series(1, ${count}) as s (n)`,
  )
  let batches = 0
  const failing = filled(() => {
    if (++batches === 2) throw new Error('killed')
  })
  await expect(migratePostgres(pool, PLACE, [...STEPS, failing])).rejects.toThrow('killed')
  const leftOf = async () => Number((await pool.query('select count(*) as left from parcel where planted is null')).rows[0]?.left)
  expect(await leftOf()).toBe(count - 5000)
  // A version without this step starts meanwhile.
  await migratePostgres(pool, PLACE)
  const steps = [...STEPS, filled(() => {}), planted(CURRENT.serves_from)]
  await Promise.all([1, 2, 3].map(() => migratePostgres(openTestPool(url, 1), PLACE, steps)))
  expect(await leftOf()).toBe(0)
  expect(await versionOf(pool)).toEqual([{ ...CURRENT, version: CURRENT.version + 2 }])
  expect((await pool.query('select backfilling from schema_version')).rows).toEqual([{ backfilling: 0 }])
})

test('if the user may not create tables, the error says what to grant', async () => {
  const { url, name } = await createDatabase('nothing')
  const role = `${name}_user`
  const asUser = new URL(url)
  asUser.username = role
  asUser.password = 'p'
  await withClient(url, (client) => client.query(`create role ${role} login password 'p'`))
  const pool = openTestPool(asUser.href)
  await expect(migratePostgres(pool, PLACE)).rejects.toThrow(
    /^store: the relay's user may not make its tables in postgres:\/\/relay@db:5432\/relay \(permission denied for schema public\)\. Nothing was changed\. .*GRANT CREATE ON SCHEMA public TO/,
  )
  await migratePostgres(openTestPool(url), PLACE)
  await withClient(url, (client) => client.query(`grant select, insert, update, delete on all tables in schema public to ${role}`))
  await migratePostgres(pool, PLACE)
  await withClient(url, (client) => client.query(`drop owned by ${role}; drop role ${role}`))
})

test('a database with strict or read-only defaults can still be migrated', async () => {
  const { url, name } = await createDatabase('nothing')
  await withClient(await sharedServer(), async (client) => {
    await client.query(`alter database ${name} set default_transaction_isolation = 'serializable'`)
    await client.query(`alter database ${name} set default_transaction_read_only = on`)
  })
  const pool = openTestPool(url)
  await migratePostgres(pool, PLACE)
  expect(await versionOf(pool)).toEqual([CURRENT])
})

test('a database from before the first release is refused with what to do', async () => {
  const pool = await openEmpty()
  await pool.query('create table schema_version (id integer primary key, version integer not null, serves_from integer not null)')
  await pool.query('insert into schema_version values (1, 16, 8)')
  await pool.query('create table sighting (parcel_id bigint not null, told bigint not null)')
  const tables = await tablesOf(pool)
  await expect(migratePostgres(pool, PLACE)).rejects.toThrow(
    'store: postgres://relay@db:5432/relay cannot be used: it was made by a version from before the first release, which this version cannot read. Nothing was changed. Start on a new store: ',
  )
  expect(await tablesOf(pool)).toEqual(tables)
})

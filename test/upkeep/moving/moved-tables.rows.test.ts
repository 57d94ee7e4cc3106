import { expect, test } from 'vitest'
import type { Engine } from '../../../src/core/store/contract.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { COLUMNS_NOT_MOVED, MOVED_TABLES, NOT_MOVED, NOT_MOVED_BY_ENGINE } from '../../../src/upkeep/moving/store-moves.rows.ts'
import { engines } from '../../support/store/engines.ts'
import { placeOf } from '../../support/store/moving.ts'
import { changeStoredRows, storedRows } from '../../support/store/stored-rows.ts'

interface Column {
  readonly table_name: string
  readonly column_name: string
}

const QUERIES = {
  sqlite: `select t.name as table_name, c.name as column_name from sqlite_schema as t join pragma_table_info(t.name) as c where t.type = 'table'`,
  postgres: "select table_name::text, column_name::text from information_schema.columns where table_schema = 'public'",
}

/** Lists the tables and columns of a store that a move would leave behind. */
async function forgotten({ name }: Engine, place: string): Promise<readonly string[]> {
  const columns = await storedRows<Column>(place, name === postgres.name ? QUERIES.postgres : QUERIES.sqlite)
  expect(columns.length).toBeGreaterThan(80)
  return columns.flatMap(({ table_name: table, column_name: column }) => {
    if (table in NOT_MOVED || table in NOT_MOVED_BY_ENGINE || `${table}.${column}` in COLUMNS_NOT_MOVED) return []
    const moved = MOVED_TABLES.find((one) => one.name === table)
    return moved?.columns.some((one) => one.name === column) === true ? [] : [`${table}.${column}`]
  })
}

test.each(engines)('every table and column of $name is moved, or stays behind with a reason', async (engine) => {
  const { place } = await placeOf(engine)
  await (await engine.openWriteStore(place)).close()
  expect(await forgotten(engine, place)).toEqual([])
  await changeStoredRows(place, 'create table something_new (id integer primary key)')
  await changeStoredRows(place, 'alter table parcel add column also_new integer')
  expect((await forgotten(engine, place)).toSorted()).toEqual(['parcel.also_new', 'something_new.id'])
})

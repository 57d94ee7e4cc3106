import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from 'kysely'
import type { Tables } from '../schema.ts'
import { type Dialect, type Params, Placeholder, readPlace, type SqlList, type SqlValue, type Statement } from '../statement.ts'

const sqliteDialect: Dialect = {
  builder: new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
  // A list is bound as JSON, so that one statement serves lists of any length.
  oneOf: (list) => sql`(select value from json_each(${list}))`,
  oneOfTexts: (list) => sql`(select value from json_each(${list}))`,
  rowsOf: (list) => sql`json_each(${list})`,
  least: (one, other) => sql`min(${one}, ${other})`,
  greatest: (one, other) => sql`max(${one}, ${other})`,
  joined: (column) => sql`group_concat(${column})`,
  hex: (column) => sql`lower(hex(${column}))`,
  unindexed: (column) => sql`+${column}`,
  integer: (value) => sql`${value}`,
}

type Place = ReturnType<typeof readPlace>

/** A statement in SQLite's words. */
export interface SqliteStatement {
  readonly sql: string
  readonly places: readonly Place[]
}

/**
 * SQLite plans a statement again at each run, which takes several times as long as the run, if it looked at the value of a place to plan it:
 * where a partial index may serve (`state = ?`) and wherever there is an order. So numbers that never change are written out, and what
 * changes stands behind a plus, which hides it from the planner and does nothing else.
 */
export function compileForSqlite(statement: Statement<never, unknown>): SqliteStatement {
  const { sql: text, parameters } = statement.compile(sqliteDialect)
  const places = parameters.map(readPlace)
  // No text of ours in a statement holds a question mark: texts are places too.
  const [start = '', ...pieces] = text.split('?')
  if (pieces.length !== places.length) throw new TypeError(`not every question mark is a place: ${text}`)
  const written = pieces.map((piece, at) => `${typeof places[at] === 'number' ? places[at] : '+?'}${piece}`)
  return { sql: start + written.join(''), places: places.filter((place) => typeof place !== 'number') }
}

/** The values of a statement's places, in order. */
export function bind({ places }: SqliteStatement, params: Params): Exclude<SqlValue, SqlList>[] {
  return places.map((place) => (place instanceof Placeholder ? bound(params[place.name] ?? null) : place))
}

function bound(value: SqlValue): Exclude<SqlValue, SqlList> {
  return isList(value) ? JSON.stringify(value) : value
}

function isList(value: SqlValue): value is SqlList {
  return Array.isArray(value)
}

import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from 'kysely'
import type { Tables } from '../schema.ts'
import { type Dialect, type Params, Placeholder, readParameter, type SqlList, type SqlValue, type Statement } from '../statement.ts'

const sqliteDialect: Dialect = {
  builder: new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
  // Lists are bound as JSON, so one statement takes lists of any length.
  oneOf: (list) => sql`(select value from json_each(${list}))`,
  oneOfTexts: (list) => sql`(select value from json_each(${list}))`,
  anyEndpoint: sql`(select endpoint.id from endpoint)`,
  rowsOf: (list) => sql`json_each(${list})`,
  least: (one, other) => sql`min(${one}, ${other})`,
  greatest: (one, other) => sql`max(${one}, ${other})`,
  joined: (column) => sql`group_concat(${column})`,
  summed: (one, other, how) =>
    sql`(select json_group_object(key, total) from (select key, ${sql.raw(how)}(value) as total from (select key, value from json_each(${one}) union all select key, value from json_each(${other})) group by key))`,
  hex: (column) => sql`lower(hex(${column}))`,
  containsAny: (column, texts) => sql`exists (select 1 from json_each(${texts}) where instr(${column}, cast(json_each.value as blob)) > 0)`,
  unindexed: (column) => sql`+${column}`,
  parcelVersion: sql`0`,
  integer: (value) => sql`${value}`,
}

type Parameter = ReturnType<typeof readParameter>

export interface SqliteStatement {
  readonly sql: string
  readonly parameters: readonly Parameter[]
}

/**
 * Compiles a statement so that SQLite plans it only once. If a plan depends on a bound value, SQLite plans again at each run, which takes
 * several times as long as the run. A plan depends on a bound value if a partial index may apply (`state = ?`), or if the statement
 * has ORDER BY. So constants are written into the SQL, and each parameter gets a unary plus, which hides its value from the planner.
 */
export function compileForSqlite(statement: Statement<never, unknown>): SqliteStatement {
  const { sql: text, parameters: given } = statement.compile(sqliteDialect)
  const parameters = given.map(readParameter)
  // Strings are parameters too, so every question mark in the SQL is a placeholder.
  const [start = '', ...pieces] = text.split('?')
  if (pieces.length !== parameters.length) throw new TypeError(`a question mark in the SQL is not a placeholder: ${text}`)
  const written = pieces.map((piece, at) => `${typeof parameters[at] === 'number' ? parameters[at] : '+?'}${piece}`)
  return { sql: start + written.join(''), parameters: parameters.filter((parameter) => typeof parameter !== 'number') }
}

export function bind({ parameters }: SqliteStatement, params: Params): Exclude<SqlValue, SqlList>[] {
  return parameters.map((parameter) => (parameter instanceof Placeholder ? bound(params[parameter.name] ?? null) : parameter))
}

function bound(value: SqlValue): Exclude<SqlValue, SqlList> {
  return isList(value) ? JSON.stringify(value) : value
}

function isList(value: SqlValue): value is SqlList {
  return Array.isArray(value)
}

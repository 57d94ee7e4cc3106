import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, type RawBuilder, sql } from 'kysely'
import type { Session } from '../../core/store/engine.ts'
import {
  type Dialect,
  type Params,
  Placeholder,
  readParameter,
  type SqlList,
  type SqlValue,
  type Statement,
  statement,
} from '../../core/store/statement.ts'
import type { Column, ColumnType, Tables } from '../../core/store/tables.ts'

const postgresDialect: Dialect = {
  builder: new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  }),
  // Bind a list as an array, so that one statement serves lists of any length.
  oneOf: (list) => sql`(select unnest(${list}::bigint[]))`,
  oneOfTexts: (list) => sql`(select unnest(${list}::text[]))`,
  anyEndpoint: sql`(select unnest(array(select endpoint.id from endpoint)))`,
  rowsOf: (list) => sql`(select unnest(${list}::bigint[]) as value)`,
  // With a null the result must be null, as in SQLite. PostgreSQL's own `least` and `greatest` ignore nulls.
  least: (one, other) => sql`(case when ${one} <= ${other} then ${one} when ${one} > ${other} then ${other} end)`,
  greatest: (one, other) => sql`(case when ${one} >= ${other} then ${one} when ${one} < ${other} then ${other} end)`,
  joined: (column) => sql`string_agg(${column}, ',')`,
  containsAny: (column, texts) =>
    sql`exists (select 1 from unnest(${texts}::text[]) as named (value) where position(convert_to(named.value, 'UTF8') in ${column}) > 0)`,
  summed: (one, other, how) =>
    sql`(select json_object_agg(key, total)::text from (select key, ${sql.raw(how)}(value::numeric) as total from (select key, value from json_each_text(${one}::json) union all select key, value from json_each_text(${other}::json)) as each group by key) as totals)`,
  hex: (column) => sql`encode(${column}, 'hex')`,
  unindexed: (column) => sql`(${column} + 0)`,
  parcelVersion: sql`parcel.version`,
  integer: (value) => sql`${value}::bigint`,
}

type Parameter = ReturnType<typeof readParameter>

export interface PostgresStatement {
  /** The name under which a connection keeps the statement prepared. */
  readonly name: string
  readonly text: string
  readonly parameters: readonly Parameter[]
}

/**
 * `in` with a list. As `= any(list)` it is a condition of an index. As a subquery it may be a join, and for a join whose table was analyzed while it
 * was almost empty the server reads the whole table. `not in` stays: its list becomes a hash table.
 */
const ONE_OF = /(?<! not) in \(select unnest\((\$\d+::\w+\[\]|array\([^)]*\))\)\)/g

/**
 * Compiles a statement. Constant numbers become part of the text, because a plan that is made once for all runs needs them to choose a
 * partial index (`state = 1`). A parameter that occurs several times is bound once.
 */
export function compileForPostgres(statement: Statement<never, unknown>): PostgresStatement {
  const { sql: text, parameters: given } = statement.compile(postgresDialect)
  const parameters: Parameter[] = []
  const numbers = new Map<string, number>()
  const written = text.replaceAll(ONE_OF, ' = any($1)').replaceAll(/\$(\d+)/g, (_match, nth: string) => {
    const parameter = readParameter(given[Number(nth) - 1])
    if (typeof parameter === 'number') return String(parameter)
    const known = parameter instanceof Placeholder ? numbers.get(parameter.name) : undefined
    if (known !== undefined) return `$${known}`
    parameters.push(parameter)
    if (parameter instanceof Placeholder) numbers.set(parameter.name, parameters.length)
    return `$${parameters.length}`
  })
  return { name: `relay_${statement.id}`, text: written, parameters }
}

export function bind({ parameters }: PostgresStatement, params: Params): SqlValue[] {
  return parameters.map((parameter) => (parameter instanceof Placeholder ? storable(params[parameter.name] ?? null) : parameter))
}

function storable(value: SqlValue): SqlValue {
  return isList(value) ? value.map(storableOne) : storableOne(value)
}

/** Rounds numbers. A time may have a fraction of a millisecond, which SQLite would store and PostgreSQL refuses. */
function storableOne<One extends Exclude<SqlValue, SqlList>>(value: One): One | string | number {
  if (typeof value === 'string') return escapeNul(value)
  return typeof value === 'number' ? Math.round(value) : value
}

function isList(value: SqlValue): value is SqlList {
  return Array.isArray(value)
}

const ESCAPE = '\u0001'
const NUL = '\u0000'

/**
 * Escapes a text, because PostgreSQL (unlike SQLite) cannot store a NUL. A NUL becomes two characters, and the escape character becomes two
 * other characters. `unescapeNul` restores every text, and escaped texts sort in the same order as the originals.
 */
export function escapeNul(text: string): string {
  if (!text.includes(NUL) && !text.includes(ESCAPE)) return text
  return text.replaceAll(ESCAPE, `${ESCAPE}\u0002`).replaceAll(NUL, `${ESCAPE}${ESCAPE}`)
}

export function unescapeNul(text: string): string {
  if (!text.includes(ESCAPE)) return text
  const [first = '', ...rest] = text.split(ESCAPE)
  let plain = first
  for (let at = 0; at < rest.length; at++) {
    const after = rest[at] ?? ''
    // An empty part lies between two escape characters, which stand for a NUL.
    if (after === '' && at + 1 < rest.length) {
      at += 1
      plain += NUL + (rest[at] ?? '')
    } else plain += ESCAPE + after.slice(1)
  }
  return plain
}

/** Makes a statement in PostgreSQL's own SQL. Rows are passed as one array per column, which the SQL reads with `unnest`. */
export function rawStatement<P extends Params>() {
  return <R>(build: (params: P) => RawBuilder<R>): Statement<P, R> =>
    statement<P>()((db, params) => ({ compile: () => build(params).compile(db) }))
}

type Row = Readonly<Record<string, Exclude<SqlValue, readonly unknown[]>>>

/** The parameters of a statement about several rows: an array per column. */
export type Columns<R extends Row> = { readonly [Name in keyof R]: readonly R[Name][] }

/** The types of columns. Those of tables sort texts by their bytes. */
export const COLUMN_TYPES: Readonly<Record<ColumnType, string>> = {
  big: 'bigint',
  int: 'integer',
  small: 'smallint',
  text: 'text',
  bytes: 'bytea',
}

/**
 * What follows the table in an `insert` of several rows: the columns, and the rows, which are called `u`. `instead`: columns that are made of others, or
 * that no row has; null: the rows have it, and it is not inserted.
 */
export function givenRows<R extends Row>(
  columns: { readonly [Name in keyof R]: Column },
  p: Columns<R>,
  instead: Readonly<Record<string, RawBuilder<unknown> | null>> = {},
): RawBuilder<unknown> {
  const names = Object.keys(columns)
  const arrays = names.map((name) => sql`${p[name]}::${sql.raw(`${COLUMN_TYPES[columns[name]?.type ?? 'text']}[]`)}`)
  const stored = [...new Set([...names, ...Object.keys(instead)])].filter((name) => instead[name] !== null)
  const values = stored.map((name) => instead[name] ?? sql.ref(`u.${name}`))
  return sql`(${namesOf(stored)}) select ${sql.join(values)} from unnest(${sql.join(arrays)}) as u (${namesOf(names)})`
}

function namesOf(names: readonly string[]): RawBuilder<unknown> {
  return sql.join(names.map((name) => sql.ref(name)))
}

/** What an `insert` sets of a row that exists: all columns that are no part of its key. */
export function replaced(columns: Readonly<Record<string, Column>>): RawBuilder<unknown> {
  const names = Object.keys(columns).filter((name) => columns[name]?.isKey !== true)
  return sql.join(names.map((name) => sql`${sql.ref(name)} = excluded.${sql.ref(name)}`))
}

/** Enqueues a write of rows. Without rows, does nothing. */
export function enqueueRows<R extends Row>(session: Session, write: Statement<Columns<R>, unknown>, rows: readonly R[]): void {
  const [first] = rows
  if (first === undefined) return
  const columns: { [Name in keyof R]?: readonly R[Name][] } = {}
  for (const name of Object.keys(first) as (keyof R)[]) columns[name] = rows.map((row) => row[name])
  session.enqueueWrite(write, columns as Columns<R>)
}

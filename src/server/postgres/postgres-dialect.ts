import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from 'kysely'
import type { Tables } from '../../core/store/schema.ts'
import {
  type Dialect,
  type Params,
  Placeholder,
  readParameter,
  type SqlList,
  type SqlValue,
  type Statement,
} from '../../core/store/statement.ts'
import { escapeNul } from './nul-escape.ts'

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

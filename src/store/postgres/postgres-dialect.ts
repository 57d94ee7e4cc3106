import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from 'kysely'
import type { Tables } from '../schema.ts'
import { type Dialect, type Params, Placeholder, readPlace, type SqlList, type SqlValue, type Statement } from '../statement.ts'
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
  // A list is bound as an array, so that one statement serves lists of any length.
  oneOf: (list) => sql`(select unnest(${list}::bigint[]))`,
  oneOfTexts: (list) => sql`(select unnest(${list}::text[]))`,
  rowsOf: (list) => sql`(select unnest(${list}::bigint[]) as value)`,
  // `least` and `greatest` would pass over a null.
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

type Place = ReturnType<typeof readPlace>

/** A statement in PostgreSQL's words. */
export interface PostgresStatement {
  /** Under which a connection keeps it prepared. */
  readonly name: string
  readonly text: string
  readonly places: readonly Place[]
}

/**
 * Numbers that never change are written out: a plan that is made once for all runs must show which partial index serves (`state = 1`). A
 * parameter that stands in several places is bound once.
 */
export function compileForPostgres(statement: Statement<never, unknown>): PostgresStatement {
  const { sql: text, parameters } = statement.compile(postgresDialect)
  const places: Place[] = []
  const numbers = new Map<string, number>()
  const written = text.replaceAll(/\$(\d+)/g, (_place, nth: string) => {
    const place = readPlace(parameters[Number(nth) - 1])
    if (typeof place === 'number') return String(place)
    const known = place instanceof Placeholder ? numbers.get(place.name) : undefined
    if (known !== undefined) return `$${known}`
    places.push(place)
    if (place instanceof Placeholder) numbers.set(place.name, places.length)
    return `$${places.length}`
  })
  return { name: `relay_${statement.id}`, text: written, places }
}

/** The values of a statement's places, in order. */
export function bind({ places }: PostgresStatement, params: Params): SqlValue[] {
  return places.map((place) => (place instanceof Placeholder ? storable(params[place.name] ?? null) : place))
}

function storable(value: SqlValue): SqlValue {
  return isList(value) ? value.map(storableOne) : storableOne(value)
}

/** Every column of numbers holds whole ones. SQLite would keep the fraction of a millisecond; the server would refuse it. */
function storableOne<One extends Exclude<SqlValue, SqlList>>(value: One): One | string | number {
  if (typeof value === 'string') return escapeNul(value)
  return typeof value === 'number' ? Math.round(value) : value
}

function isList(value: SqlValue): value is SqlList {
  return Array.isArray(value)
}

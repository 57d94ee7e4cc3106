import type { Compilable, CompiledQuery, Expression, Kysely, RawBuilder } from 'kysely'
import type { Tables } from './tables.ts'

export type SqlValue = string | number | Uint8Array | SqlList | null

/** A list as a parameter. Every engine accepts lists of numbers or strings. Only PostgreSQL accepts lists of bytes, and lists with nulls. */
export type SqlList = readonly (string | number | Uint8Array | null)[]

/** Parameters by name. For a list, see `Dialect.oneOf`. */
export type Params = Readonly<Record<string, SqlValue>>

/** The parts of shared statements for which the engines need different SQL. */
export interface Dialect {
  /** Builds and compiles queries; never runs them. */
  readonly builder: Kysely<Tables>
  /** The numbers of a list, as the right side of `in`. */
  oneOf(list: readonly number[]): RawBuilder<number>
  oneOfTexts(list: readonly string[]): RawBuilder<string>
  /** The ids of all endpoints, as the right side of `in`, for an index that begins with the endpoint. */
  readonly anyEndpoint: RawBuilder<number>
  /** A list as a table with one column, `value`. */
  rowsOf(list: readonly number[]): RawBuilder<{ readonly value: number }>
  /** The smaller of two values; null if either is null. */
  least<Value extends number | null>(one: Expression<Value>, other: Expression<number>): RawBuilder<Value>
  /** The larger of two values; null if either is null. */
  greatest<Value extends number | null>(one: Expression<Value>, other: Expression<number>): RawBuilder<Value>
  /** Concatenates a text column over all rows, separated by commas; null if there are no rows. */
  joined(column: Expression<string>): RawBuilder<string | null>
  /** Merges two JSON objects of numbers, given as texts. For a name in both, the result has the sum or the smaller number (`how`). */
  summed(one: Expression<string>, other: Expression<string>, how: 'sum' | 'min'): RawBuilder<string>
  /** Bytes as lower-case hexadecimal. */
  hex(column: Expression<Uint8Array>): RawBuilder<string>
  containsAny(column: Expression<Uint8Array | null>, texts: readonly string[]): RawBuilder<boolean>
  /**
   * A column in a form for which the planner cannot use an index. With the column itself, and a table that was almost empty when it was analyzed, the
   * planner may find rows by their state in a partial index instead of by their ids.
   */
  unindexed<Value>(column: Expression<Value>): RawBuilder<Value>
  /** The version of the parcel, in a query of `parcel`. It is always 0 on SQLite, where no other process changes parcels. */
  readonly parcelVersion: RawBuilder<number>
  /** An integer parameter with its type, for SQL from which PostgreSQL cannot infer the type. */
  integer(value: number | null): RawBuilder<number>
}

/** A query that each engine compiles once, to SQL with a placeholder for each parameter. */
export interface Statement<P, R> {
  /** Unique and counted from 0, so engines can use it as an array index. */
  readonly id: number
  readonly compile: (dialect: Dialect) => CompiledQuery
  /** Never set. It carries the types of parameters and rows. */
  readonly types?: (params: P) => R
}

/** Takes the place of a parameter's value while a query is built. */
export class Placeholder {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

let statements = 0

type AnyStatement = Statement<never, unknown>

const defined: AnyStatement[] = []

/** Every statement of the modules that are loaded, so that a test can ask for all plans. */
export function definedStatements(): readonly AnyStatement[] {
  return defined
}

/**
 * Defines a query: `statement<{ id: number }>()((db, p) => db.selectFrom('parcel').where('id', '=', p.id)...)`. Building and compiling take
 * longer than running, so an engine does both once, at the first run.
 */
export function statement<P extends Params = Record<never, never>>() {
  return <R>(build: (db: Kysely<Tables>, params: P, dialect: Dialect) => Compilable<R>): Statement<P, R> => {
    const one: Statement<P, R> = {
      id: statements++,
      compile: (dialect) => build(dialect.builder, placeholders<P>(), dialect).compile(),
    }
    defined.push(one)
    return one
  }
}

/** Returns a placeholder for every property. TypeScript takes it for the value itself, and so checks the types of the query. */
function placeholders<P extends Params>(): P {
  return new Proxy({}, { get: (_target, name) => new Placeholder(String(name)) }) as P
}

/** Returns a value for each of some columns: the parameter of the same name. */
export function rowOf<Row extends Params>(columns: Readonly<Record<keyof Row, unknown>>, params: Row): Row {
  return Object.fromEntries(Object.keys(columns).map((name) => [name, params[name]])) as Row
}

export function readParameter(parameter: unknown): Placeholder | Exclude<SqlValue, SqlList> {
  if (parameter instanceof Placeholder || parameter instanceof Uint8Array || parameter === null) return parameter
  if (typeof parameter === 'string' || typeof parameter === 'number') return parameter
  throw new TypeError(`a ${typeof parameter} cannot be a parameter of a statement`)
}

import type { Compilable, CompiledQuery, Expression, Kysely, RawBuilder } from 'kysely'
import type { Tables } from './schema.ts'

export type SqlValue = string | number | Uint8Array | SqlList | null

/** Lists of numbers and texts serve every engine; those with bytes or nulls only where an engine has arrays. */
export type SqlList = readonly (string | number | Uint8Array | null)[]

/** Parameters by name. A list stands for any number of values: see `Dialect.oneOf`. */
export type Params = Readonly<Record<string, SqlValue>>

/** What the SQL of engines differs in, as far as they share statements. */
export interface Dialect {
  /** Builds queries and compiles them; it never runs one. */
  readonly builder: Kysely<Tables>
  /** The numbers of a list, to stand behind `in`. */
  oneOf(list: readonly number[]): RawBuilder<number>
  /** The texts of a list, to stand behind `in`. */
  oneOfTexts(list: readonly string[]): RawBuilder<string>
  /** The values of a list as a table with the one column `value`. */
  rowsOf(list: readonly number[]): RawBuilder<{ readonly value: number }>
  /** The smaller of two; null if either is. */
  least<Value extends number | null>(one: Expression<Value>, other: Expression<number>): RawBuilder<Value>
  /** The larger of two; null if either is. */
  greatest<Value extends number | null>(one: Expression<Value>, other: Expression<number>): RawBuilder<Value>
  /** The texts of a column over all rows, with commas between them; null: there are no rows. */
  joined(column: Expression<string>): RawBuilder<string | null>
  /** Bytes as lower-case hexadecimal digits. */
  hex(column: Expression<Uint8Array>): RawBuilder<string>
  /** A column as a value that no index serves. */
  unindexed<Value>(column: Expression<Value>): RawBuilder<Value>
  /** A parameter in a place that does not show its type. */
  integer(value: number | null): RawBuilder<number>
}

/** A query that each engine compiles once: with its own SQL, and a place for each parameter. */
export interface Statement<P, R> {
  /** Unlike that of any other: from 0 on, so that it can be a place in a list. */
  readonly id: number
  readonly compile: (dialect: Dialect) => CompiledQuery
  /** Only to carry the types of parameters and rows. */
  readonly types?: (params: P) => R
}

/** Stands for a parameter's value while a query is built. */
export class Placeholder {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

let statements = 0

/**
 * Says a query once for all its runs: `statement<{ id: number }>()((db, p) => db.selectFrom('parcel').where('id', '=', p.id)...)`. Building and
 * compiling take longer than running does, so an engine does both at its first run only.
 */
export function statement<P extends Params = Record<never, never>>() {
  return <R>(build: (db: Kysely<Tables>, params: P, dialect: Dialect) => Compilable<R>): Statement<P, R> => ({
    id: statements++,
    compile: (dialect) => build(dialect.builder, placeholders<P>(), dialect).compile(),
  })
}

/** Every property reads as a placeholder of that name. The type says it is the value, because the query is checked against the value's type. */
function placeholders<P extends Params>(): P {
  return new Proxy({}, { get: (_target, name) => new Placeholder(String(name)) }) as P
}

/** What stands in a place of a compiled query: a parameter, or a value that is the same at every run. */
export function readPlace(parameter: unknown): Placeholder | Exclude<SqlValue, SqlList> {
  if (parameter instanceof Placeholder || parameter instanceof Uint8Array || parameter === null) return parameter
  if (typeof parameter === 'string' || typeof parameter === 'number') return parameter
  throw new TypeError(`a ${typeof parameter} cannot stand in a statement`)
}

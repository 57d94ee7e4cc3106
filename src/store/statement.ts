import { type Compilable, DummyDriver, Kysely, type RawBuilder, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from 'kysely'
import type { Tables } from './schema.ts'

export type SqlValue = string | number | Uint8Array | null

/** A query compiled once: the SQL, and for each of its places a parameter's name or a constant. */
export interface Statement<P, R> {
  /** Unlike that of any other: from 0 on, so that it can be a place in a list. */
  readonly id: number
  readonly sql: string
  readonly places: readonly (Placeholder | SqlValue)[]
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

/** Builds and compiles, never runs: what runs statements is an engine. */
const builder = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
})

/** Parameters by name. */
export type Params = Readonly<Record<string, SqlValue>>

/**
 * Compiles a query once for all its runs: `statement<{ id: number }>()((db, p) => db.selectFrom('parcel').where('id', '=', p.id)...)`.
 * Building and compiling take longer than running does.
 */
export function statement<P extends Params = Record<never, never>>() {
  return <R>(build: (db: Kysely<Tables>, params: P) => Compilable<R>): Statement<P, R> => {
    const { sql, parameters } = build(builder, placesOf<P>()).compile()
    return { id: statements++, ...plannedOnce(sql, parameters.map(asPlace)) }
  }
}

/**
 * SQLite plans a statement anew at every run, which takes several times as long as running it, when it has looked at the value of a place
 * to plan it: where a partial index may serve (`state = ?`) and wherever there is an order. So numbers that never change are written out,
 * and what does change stands behind a plus, which hides it from the planner and does nothing else.
 */
function plannedOnce(sql: string, places: readonly (Placeholder | SqlValue)[]): Pick<Statement<never, never>, 'sql' | 'places'> {
  // No text of ours in a statement holds a question mark: texts are places too.
  const [start = '', ...pieces] = sql.split('?')
  if (pieces.length !== places.length) throw new TypeError(`not every question mark is a place: ${sql}`)
  const written = pieces.map((piece, at) => `${typeof places[at] === 'number' ? places[at] : '+?'}${piece}`)
  return { sql: start + written.join(''), places: places.filter((place) => typeof place !== 'number') }
}

function asPlace(parameter: unknown): Placeholder | SqlValue {
  if (parameter instanceof Placeholder || parameter instanceof Uint8Array || parameter === null) return parameter
  if (typeof parameter === 'string' || typeof parameter === 'number') return parameter
  throw new TypeError(`a ${typeof parameter} cannot stand in a statement`)
}

/** Every property reads as a place of that name. The type says it is the value, because the query is checked against the value's type. */
function placesOf<P extends Params>(): P {
  return new Proxy({}, { get: (_target, name) => new Placeholder(String(name)) }) as P
}

/** The values of a statement's places, in order. */
export function bind<P extends Params>(statement: Statement<P, unknown>, params: P): SqlValue[] {
  return statement.places.map((place) => (place instanceof Placeholder ? (params[place.name] ?? null) : place))
}

/** One of the values of a JSON list, to stand behind `in`: what is asked of many is one statement, however many they are. */
export function oneOf<Value = number>(json: string): RawBuilder<Value> {
  return sql<Value>`(select value from json_each(${json}))`
}

import type { RawBuilder } from 'kysely'
import { type Params, type Statement, statement } from '../statement.ts'

/** A statement written in PostgreSQL's own words: sets come as arrays, a column each, and are read with `unnest`. */
export function rawStatement<P extends Params>() {
  return <R>(build: (params: P) => RawBuilder<R>): Statement<P, R> =>
    statement<P>()((db, params) => ({ compile: () => build(params).compile(db) }))
}

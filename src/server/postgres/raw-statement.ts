import type { RawBuilder } from 'kysely'
import type { Session } from '../../core/store/engine.ts'
import { type Params, type SqlValue, type Statement, statement } from '../../core/store/statement.ts'

/** Makes a statement in PostgreSQL's own SQL. Rows are passed as one array per column, which the SQL reads with `unnest`. */
export function rawStatement<P extends Params>() {
  return <R>(build: (params: P) => RawBuilder<R>): Statement<P, R> =>
    statement<P>()((db, params) => ({ compile: () => build(params).compile(db) }))
}

type Row = Readonly<Record<string, Exclude<SqlValue, readonly unknown[]>>>

/** The parameters of a statement about several rows: an array per column. */
export type Columns<R extends Row> = { readonly [Name in keyof R]: readonly R[Name][] }

/** Enqueues a write of rows. Without rows, does nothing. */
export function enqueueRows<R extends Row>(session: Session, write: Statement<Columns<R>, unknown>, rows: readonly R[]): void {
  const [first] = rows
  if (first === undefined) return
  const columns: { [Name in keyof R]?: readonly R[Name][] } = {}
  for (const name of Object.keys(first) as (keyof R)[]) columns[name] = rows.map((row) => row[name])
  session.enqueueWrite(write, columns as Columns<R>)
}

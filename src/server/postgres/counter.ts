import { sql } from 'kysely'
import type { Session } from '../../core/store/engine.ts'
import { rawStatement } from './raw-statement.ts'

/**
 * The counter of sequences is one row. A transaction that takes numbers locks the row until its commit. So numbers rise in the order of
 * commits, and after a reader has seen a number, no lower number appears. To keep the lock short, the transaction waits for no
 * answer of the server while it has the lock (see `transaction-end`). `version` counts changes of endpoints. `base` is the number before
 * the first one that the transaction takes.
 */
const advance = rawStatement<{ count: number; version: number }>()(
  (p) => sql<{ base: number }>`
    update counter set base = value, value = value + ${p.count}::bigint / (case when version = ${p.version}::bigint then 1 else 0 end)
    where name = 'sequence' returning base`,
)
const advanceLast = rawStatement<{ count: number; changes: number; version: number | null; last: number | null }>()(
  (p) => sql`
    update counter set base = value, value = value + ${p.count}::bigint, version = version + ${p.changes}::bigint / (
      case when version = coalesce(${p.version}::bigint, version) and value = coalesce(${p.last}::bigint, value) then 1 else 0 end)
    where name = 'sequence'`,
)
const read = rawStatement()(() => sql<{ value: number }>`select value from counter where name = 'sequence'`)
const readVersion = rawStatement()(() => sql<{ value: number }>`select version as value from counter where name = 'sequence'`)
const hold = rawStatement<{ known: number }>()(
  (p) => sql`select 1 / (case when version = ${p.known}::bigint then 1 else 0 end) from counter where name = 'sequence'`,
)

/** Takes numbers, and returns the number before them. Fails as a conflict (by a division by zero) if endpoints have changed since `version`. */
export async function advanceCounter(session: Session, count: number, version: number): Promise<number> {
  const [row] = await session.all(advance, { count, version })
  if (row === undefined) throw new Error('the counter of the store is gone')
  return row.base
}

/** Returns how often endpoints have changed. Read this before the endpoints, so that no change in between goes unnoticed. */
export async function readEndpointsVersion(session: Session): Promise<number> {
  return await numberIn(session.all(readVersion, {}))
}

/**
 * Takes `count` numbers, and adds `changes` to the version of the endpoints, so that batches which used the old endpoints begin again. Fails
 * as a conflict if endpoints have changed since `version`, or if another transaction has taken numbers after `last`. If `version` or `last`
 * is null, it is not checked.
 */
export function advanceAtEnd(
  session: Session,
  end: { readonly count: number; readonly changes: number; readonly version: number | null; readonly last: number | null },
): void {
  session.enqueueWrite(advanceLast, end)
}

/** Fails as a conflict if endpoints have changed since `known`. */
export function endpointsStay(session: Session, known: number): void {
  session.enqueueWrite(hold, { known })
}

const order = rawStatement()(() => sql`update counter set value = value + 1 where name = 'orders'`)

/** Tells other replicas that waiting deliveries have changed. Call it last in a transaction, because it locks a row that others need. */
export function announceOrder(session: Session): void {
  session.enqueueWrite(order, {})
}

/** Reads the last committed sequence. */
export async function readLastSequence(session: Session): Promise<number> {
  return await numberIn(session.all(read, {}))
}

async function numberIn(rows: Promise<readonly { readonly value: number }[]>): Promise<number> {
  const [row] = await rows
  if (row === undefined) throw new Error('the counter of the store is gone')
  return row.value
}

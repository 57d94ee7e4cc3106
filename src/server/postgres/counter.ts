import { sql } from 'kysely'
import type { Session } from '../../core/store/engine.ts'
import { PROVISIONAL } from './history/provisional.ts'
import { rawStatement } from './postgres-dialect.ts'

/** Which database server answers, and how far its counter is. */
export interface Standing {
  /** Changes when a standby is promoted, a backup is restored or the server is restarted: see `SERVER`. */
  readonly server: number
  /** The last sequence that was committed. */
  readonly sequence: number
}

/**
 * An expression that identifies a server, in a statement that reads `counter`: the time of the server's start, in microseconds, plus the id
 * of the table. A promoted standby and restored files have another start time. Tables that are restored while the server runs have other ids.
 */
export const SERVER = '(extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint + counter.tableoid::bigint'

/** The columns of a standing, for a statement that reads the row `sequence` of `counter` anyway. */
export const standingColumns = sql<Standing>`${sql.raw(SERVER)} as server, counter.value as sequence`

/** Notices that cached data may be wrong: a different server answers, or the counter has gone back. */
export function createStandingWatch() {
  let last: Standing | null = null
  return {
    /** Call it when the statement is sent, and call the returned function with the answer. True: cached data may be wrong. */
    asking() {
      // Compare with the state when the statement was sent, because an answer on another connection may overtake this one.
      const floor = last
      return (found: Standing): boolean => {
        const isBack = floor !== null && (found.server !== floor.server || found.sequence < floor.sequence)
        // An answer on another connection may have shown the same change already.
        const isNews = isBack && (last === floor || last?.server !== found.server || found.sequence < last.sequence)
        if (isNews || last === null || (last.server === found.server && found.sequence > last.sequence)) last = found
        return isNews
      }
    },
  }
}

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
function advanceAtEnd(
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

/**
 * The last part of a transaction. A transaction that locks the counter keeps all others from committing, so it must not wait for an answer
 * while it has the lock. Everything that needs the counter is collected here, and sent together with the commit. Until the commit, sequences
 * are provisional.
 */
export type TransactionEnd = ReturnType<typeof createTransactionEnd>

export function createTransactionEnd(session: Session) {
  const writes: (() => void)[] = []
  let given = 0
  let change: { readonly known: number | null } | null = null
  let last: number | null = null
  return {
    /** Returns the next sequence. It is provisional, so write rows with it in `whenNumbered`. */
    give() {
      given += 1
      return PROVISIONAL + given
    },
    /** Returns a provisional number for the first sequence after this transaction. */
    toCome: () => PROVISIONAL + given + 1,
    /**
     * Notes that this transaction changes endpoints. `known`: the version of the endpoints when it read them; null: it has not read them. If
     * another transaction has changed endpoints since, this one begins again.
     */
    changeEndpoints(known: number | null) {
      change ??= { known }
    },
    /** Makes the transaction begin again if another one has taken a number above `sequence`. */
    nothingSince(sequence: number) {
      last = sequence
    },
    /** Adds a write that is sent after the counter is locked, so that the server can replace provisional numbers. */
    whenNumbered: (write: () => void) => void writes.push(write),
    /** Sends everything. The commit must follow at once. */
    send() {
      if (given === 0 && change === null && last === null && writes.length === 0) return
      advanceAtEnd(session, { count: given, changes: change === null ? 0 : 1, version: change?.known ?? null, last })
      for (const write of writes) write()
    },
  }
}

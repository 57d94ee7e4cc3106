import { sql } from 'kysely'
import type { Session } from '../engine.ts'
import type { Sequence } from '../write-verbs.ts'
import { rawStatement } from './raw-statement.ts'

/**
 * The one counter of everything that is learnt, in a row of its own. Whoever gives numbers has it locked from then to its commit, so that numbers rise in
 * the order of commits, and a reader who has seen one never finds a lower one later. `version` counts changes of endpoints; `base` is where the numbers of
 * the transaction that holds the row begin.
 */
const advance = rawStatement<{ count: number; version: number }>()(
  (p) => sql<{ base: number }>`
    update counter set base = value, value = value + ${p.count}::bigint / (case when version = ${p.version}::bigint then 1 else 0 end)
    where name = 'sequence' returning base`,
)
const next = rawStatement()(
  () => sql<{ value: number }>`update counter set base = value, value = value + 1 where name = 'sequence' returning value`,
)
const lock = rawStatement()(() => sql<{ value: number }>`select value from counter where name = 'sequence' for update`)
const read = rawStatement()(() => sql<{ value: number }>`select value from counter where name = 'sequence'`)
const readVersion = rawStatement()(() => sql<{ value: number }>`select version as value from counter where name = 'sequence'`)
const bump = rawStatement<{ known: number | null }>()(
  (p) => sql`
    update counter set version = version + 1 / (case when version = coalesce(${p.known}::bigint, version) then 1 else 0 end) where name = 'sequence'`,
)
const hold = rawStatement<{ known: number }>()(
  (p) => sql`select 1 / (case when version = ${p.known}::bigint then 1 else 0 end) from counter where name = 'sequence'`,
)

/** Takes numbers, and gives the last before them. Fails as a conflict (it divides by nothing) if endpoints have changed since `version`. */
export async function advanceCounter(session: Session, count: number, version: number): Promise<number> {
  const [row] = await session.all(advance, { count, version })
  if (row === undefined) throw new Error('the counter of the store is gone')
  return row.base
}

/** The version that `endpointsChange` compares. Read it before the endpoints. */
export async function readEndpointsVersion(session: Session): Promise<number> {
  return await numberIn(session.all(readVersion, {}))
}

/**
 * Endpoints are about to change: batches that were decided with those of before are decided again. `known`: their version when they were read; if others
 * have changed them since, this fails as a conflict. Null: they were not read.
 */
export function endpointsChange(session: Session, known: number | null): void {
  session.enqueueWrite(bump, { known })
}

/** Fails as a conflict if endpoints have changed since `known`. */
export function endpointsStay(session: Session, known: number): void {
  session.enqueueWrite(hold, { known })
}

/** Nobody gives a number from now until the transaction ends. */
export function lockCounter(session: Session): void {
  session.enqueueWrite(lock, {})
}

const order = rawStatement()(() => sql`update counter set value = value + 1 where name = 'orders'`)

/** Shows other replicas that what waits for endpoints has changed. The last lock of a transaction. */
export function announceOrder(session: Session): void {
  session.enqueueWrite(order, {})
}

export function createSequence(session: Session): Sequence {
  return {
    next: () => numberIn(session.all(next, {})),
    // Locked: what is decided from it must still be the last when it is written.
    last: () => numberIn(session.all(lock, {})),
  }
}

/** The last number of what is committed. */
export async function readLastSequence(session: Session): Promise<number> {
  return await numberIn(session.all(read, {}))
}

async function numberIn(rows: Promise<readonly { readonly value: number }[]>): Promise<number> {
  const [row] = await rows
  if (row === undefined) throw new Error('the counter of the store is gone')
  return row.value
}

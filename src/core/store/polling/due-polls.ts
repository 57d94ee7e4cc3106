import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import { pollableNow } from '../../domain/identifiers.ts'
import type { DueCursor, ExpectedPush, PollCandidate } from '../../domain/polling/poll.ts'
import type { Session } from '../engine.ts'
import { loadIdentifiersOf } from '../history/parcels.ts'
import { statement } from '../statement.ts'
import type { Tables } from '../tables.ts'

/** `after`: the last parcel of the page before. */
export interface DuePage {
  readonly nowMs: number
  readonly limit: number
  readonly after: DueCursor | null
}

const due = statement<{ nowMs: number; fromMs: number; afterId: number; limit: number }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select(['id', 'next_poll_at_ms'])
    .where('next_poll_at_ms', '<=', p.nowMs)
    .where('next_poll_at_ms', '>=', p.fromMs)
    .where((row) => row.or([row('next_poll_at_ms', '>', p.fromMs), row('id', '>', p.afterId)]))
    .orderBy('next_poll_at_ms')
    .orderBy('id')
    .limit(p.limit),
)
/** Reads a few columns of each parcel and its identifiers, but not its history, so that a pass over many candidates is cheap. */
const askable = statement<{ ids: readonly number[]; nowMs: number }>()((db, p, { rowsOf }) =>
  db
    .selectFrom(rowsOf(p.ids).as('wanted'))
    .innerJoin('parcel', 'parcel.id', 'wanted.value')
    .leftJoin('identifier', 'identifier.parcel_id', 'parcel.id')
    .select([
      'parcel.id',
      'parcel.last_seen_at_ms',
      'parcel.checked_at_ms',
      'parcel.failures',
      'identifier.value',
      'identifier.is_tracking_id',
      'identifier.refused_at_ms',
    ])
    .where('parcel.next_poll_at_ms', '<=', p.nowMs),
)

const BEFORE_ALL = Number.MIN_SAFE_INTEGER

/** Lists due parcels that have no lease, most overdue first. Reads only the index of the schedule. */
export async function findDuePolls(session: Session, leases: Leases, { nowMs, limit, after }: DuePage): Promise<readonly DueCursor[]> {
  // Copy the leases before the read. If a poll ends during the read, the read may still return its parcel as due. Its lease in the copy keeps it out.
  const held = new Set(leases.held(nowMs).keys())
  const from = { fromMs: after?.dueAtMs ?? BEFORE_ALL, afterId: after?.parcelId ?? 0 }
  const rows = await session.all(due, { nowMs, ...from, limit: limit + held.size })
  return rows
    .filter(({ id }) => !held.has(id))
    .slice(0, limit)
    .map((row) => ({ parcelId: row.id, dueAtMs: row.next_poll_at_ms ?? nowMs }))
}

/** Loads those of the given parcels that are due and have no lease, in one statement. */
export async function findAskable(
  session: Session,
  leases: Leases,
  { parcelIds, nowMs }: { readonly parcelIds: readonly number[]; readonly nowMs: number },
): Promise<readonly PollCandidate[]> {
  const held = leases.held(nowMs)
  const ids = parcelIds.filter((parcelId) => !held.has(parcelId))
  const rows = Map.groupBy(await session.all(askable, { ids, nowMs }), ({ id }) => id)
  return parcelIds.flatMap((parcelId): readonly PollCandidate[] => {
    const [first, ...others] = rows.get(parcelId) ?? []
    if (first === undefined) return []
    const inOrder = others.length === 0 ? [first] : [first, ...others].sort((a, b) => (a.is_tracking_id ?? 0) - (b.is_tracking_id ?? 0))
    const known = inOrder.flatMap(({ value, refused_at_ms: refusedAtMs }) => (value === null ? [] : [{ value, refusedAtMs }]))
    const identifiers = pollableNow(known, first.last_seen_at_ms, nowMs).map(({ value }) => value)
    const pushedSince = (first.last_seen_at_ms ?? 0) > (first.checked_at_ms ?? 0)
    return [{ parcelId, identifiers, pushedSince, failedAtMs: first.failures === 0 ? null : first.checked_at_ms }]
  })
}

/** The parcels being polled, each with the time when its lease expires (epoch milliseconds). */
export interface Leases {
  take(parcelIds: readonly number[], untilMs: number): void
  release(parcelId: number): void
  /** Must be called when the clock was set back by `byMs`. Shortens all leases. */
  putBack(byMs: number): void
  /** Drops expired leases; returns the rest. */
  held(nowMs: number): ReadonlyMap<number, number>
}

/** Leases of one transaction, for engines that run several transactions at once. */
export interface TransactionLeases extends Leases {
  /** Applies the releases. Call it once the transaction is durable. */
  committed(): void
  /** Releases what the transaction took. Call it after a rollback. */
  rolledBack(): void
}

/**
 * A lease takes effect at once, but a release takes effect only after the commit. Until the commit, other transactions read the old due time,
 * and would poll the parcel again if it had no lease.
 */
export function createTransactionLeases(leases: Leases): TransactionLeases {
  const taken: number[] = []
  const atCommit: (() => void)[] = []
  return {
    take(parcelIds, untilMs) {
      taken.push(...parcelIds)
      leases.take(parcelIds, untilMs)
    },
    release: (parcelId) => void atCommit.push(() => leases.release(parcelId)),
    putBack: (byMs) => void atCommit.push(() => leases.putBack(byMs)),
    held: leases.held,
    committed() {
      for (const work of atCommit) work()
    },
    rolledBack() {
      for (const parcelId of taken) leases.release(parcelId)
    },
  }
}

/**
 * Keeps leases in memory, because only one process polls. With leases in the database, each poll would rewrite a row and its index entry
 * twice, and the leases of a crashed process would delay polls.
 */
export function createLeases(): Leases {
  const leases = new Map<number, number>()
  return {
    take(parcelIds, untilMs) {
      for (const parcelId of parcelIds) leases.set(parcelId, untilMs)
    },
    release: (parcelId) => void leases.delete(parcelId),
    putBack(byMs) {
      for (const [parcelId, untilMs] of leases) leases.set(parcelId, untilMs - byMs)
    },
    held(nowMs) {
      for (const [parcelId, untilMs] of leases) if (untilMs <= nowMs) leases.delete(parcelId)
      return leases
    },
  }
}

/** So many parcels are looked at. Parcels whose polls fail are polled again sooner, so those with the latest next polls are rarely among them. */
const LOOKED_AT = 512
const FOUND_MAX = 64

/** Those of these parcels whose last poll was answered. */
const answeredOf = (db: Kysely<Tables>, parcels: SelectQueryBuilder<Tables, 'parcel', object>) =>
  db
    .selectFrom(parcels.select(['id', 'failures', 'checked_at_ms']).limit(sql.lit(LOOKED_AT)).as('looked'))
    .select('id')
    .where('failures', '=', 0)
    .where('checked_at_ms', 'is not', null)
    .limit(sql.lit(FOUND_MAX))

const answered = statement()((db) =>
  answeredOf(db, db.selectFrom('parcel').where('next_poll_at_ms', 'is not', null).orderBy('next_poll_at_ms', 'desc')),
)

const ended = statement<{ stopped: string }>()((db, p) =>
  answeredOf(db, db.selectFrom('parcel').where('next_poll_at_ms', 'is', null).where('stopped', '=', p.stopped).orderBy('id', 'desc')),
)

/** Parcels of which an answer is kept, however their later polls ended. */
const everAnswered = statement()((db) =>
  db
    .selectFrom('answer')
    .select('parcel_id as id')
    .distinct()
    .where('parcel_id', '>', sql.lit(0))
    .orderBy('parcel_id', 'desc')
    .limit(sql.lit(FOUND_MAX)),
)

/**
 * Lists some parcels whose last poll was answered, each by the identifier by which it is polled: watched parcels or, if there are none, parcels
 * that are not polled any more. `orEver`: or else, parcels of which an answer is kept.
 */
export async function findAnsweredParcels(session: Session, { orEver } = { orEver: false }): Promise<readonly string[]> {
  let found = await session.all(answered, {})
  if (found.length === 0)
    found = [...(await session.all(ended, { stopped: 'stale' })), ...(await session.all(ended, { stopped: 'delivered' }))]
  if (found.length === 0 && orEver) found = await session.all(everAnswered, {})
  // The carrier may answer only to the tracking number, which comes first.
  const rows = await loadIdentifiersOf(
    session,
    found.map(({ id }) => id),
  )
  const usable = rows.filter((row) => row.refused_at_ms === null)
  return [...new Map(usable.toReversed().map((row) => [row.parcel_id, row.value])).values()]
}

const insertExpected = statement<ReturnType<typeof expectedRow>>()((db, p) =>
  db
    .insertInto('expected_push')
    .values({ entry: p.entry, parcel_id: p.parcelId, event_at_ms: p.eventAtMs, found_at_ms: p.foundAtMs, due_at_ms: p.dueAtMs }),
)
const dueExpected = statement<{ nowMs: number; limit: number }>()((db, p) =>
  db.selectFrom('expected_push').selectAll().where('due_at_ms', '<=', p.nowMs).orderBy('due_at_ms').limit(p.limit),
)
const deleteExpected = statement<{ entries: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('expected_push').where('entry', 'in', oneOf(p.entries)),
)
const moveExpected = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf }) =>
  db.updateTable('expected_push').set({ parcel_id: p.into }).where('parcel_id', 'in', oneOf(p.ids)),
)

type Expected = ExpectedPush & { readonly dueAtMs: number }

export async function expectPush(session: Session, expected: Expected): Promise<void> {
  await session.run(insertExpected, expectedRow(expected))
}

export function expectedRow({ entry, parcelId, eventAtMs, foundAtMs, dueAtMs }: Expected) {
  return { entry, parcelId, eventAtMs, foundAtMs, dueAtMs }
}

export async function duePushes(session: Session, nowMs: number, limit: number): Promise<readonly ExpectedPush[]> {
  const rows = await session.all(dueExpected, { nowMs, limit })
  return rows.map((row) => ({ entry: row.entry, parcelId: row.parcel_id, eventAtMs: row.event_at_ms, foundAtMs: row.found_at_ms }))
}

export function dropExpectedPushes(session: Session, entries: readonly number[]): void {
  session.enqueueWrite(deleteExpected, { entries })
}

export async function moveExpectedPushes(session: Session, from: readonly number[], into: number): Promise<void> {
  await session.run(moveExpected, { ids: from, into })
}

import { pollableNow } from '../../domain/identifiers.ts'
import type { DueCursor, PollCandidate } from '../../domain/polling/poll.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import type { Leases } from './leases.ts'

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

import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import { survivorOf } from './survivors.ts'

const eventsOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('delivery')
    .select((row) => [survivorOf(row.ref('delivery.parcel_id'), row.ref('delivery.sequence')).as('parcel_id'), 'sequence', 'inbox_id'])
    .where('id', 'in', oneOf(p.ids))
    .orderBy('sequence'),
)
/** Uses the index by parcel alone, because a parcel has few deliveries. With sequences, it would look up every pair of parcel and sequence. */
const sameEvents = statement<{ endpointId: number; parcelIds: readonly number[]; sequences: readonly number[] }>()((db, p, dialect) =>
  db
    .selectFrom('delivery')
    .select(['id', 'parcel_id', 'sequence', 'state', 'queued_at_ms'])
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', 'in', dialect.oneOf(p.parcelIds))
    .where((row) => row(dialect.unindexed(row.ref('sequence')), 'in', dialect.oneOf(p.sequences))),
)
const insertBehind = statement<{
  endpointId: number
  parcelId: number
  sequence: number
  inboxId: number | null
  queuedAtMs: number
  nowMs: number
}>()((db, p, { integer }) =>
  db
    .insertInto('delivery')
    .values((of) => ({
      endpoint_id: p.endpointId,
      parcel_id: p.parcelId,
      sequence: p.sequence,
      previous_sequence: of.fn.coalesce(
        of
          .selectFrom('delivery as before')
          .select('before.sequence')
          .where('before.endpoint_id', '=', p.endpointId)
          .where('before.parcel_id', '=', p.parcelId)
          .where('before.sequence', '<', p.sequence)
          .orderBy('before.sequence', 'desc')
          .limit(1),
        integer(0),
      ),
      inbox_id: p.inboxId,
      state: DELIVERY_STATE.behind,
      attempts: 0,
      queued_at_ms: p.queuedAtMs,
      next_attempt_at_ms: p.nowMs,
    }))
    .onConflict((conflict) => conflict.doNothing()),
)

/** An event whose delivery is copied to another endpoint. */
export interface Copy {
  readonly parcelId: number
  readonly sequence: number
  readonly inboxId: number | null
}

/**
 * Returns the events of deliveries, by sequence, with the parcels that hold them now. These may differ from the parcels in the rows, because a
 * join does not move the deliveries of removed endpoints.
 */
export async function findCopies(session: Session, deliveries: readonly { readonly id: number }[]): Promise<readonly Copy[]> {
  const rows = await session.all(eventsOf, { ids: deliveries.map(({ id }) => id) })
  return rows.map((row) => ({ parcelId: row.parcel_id, sequence: row.sequence, inboxId: row.inbox_id }))
}

/**
 * Looks up the endpoint's deliveries of these events. `endedIds`: the deliveries that have ended, except those queued after `untilMs`, because
 * this replay has queued them. `missing`: the events without any delivery.
 */
export async function findSame(
  session: Session,
  { endpointId, untilMs }: { readonly endpointId: number; readonly untilMs: number },
  copies: readonly Copy[],
): Promise<{ readonly endedIds: readonly number[]; readonly missing: readonly Copy[] }> {
  const rows = await session.all(sameEvents, {
    endpointId,
    parcelIds: [...new Set(copies.map(({ parcelId }) => parcelId))],
    sequences: copies.map(({ sequence }) => sequence),
  })
  const nameOf = (parcelId: number, sequence: number) => `${parcelId} ${sequence}`
  const known = new Set(rows.map((row) => nameOf(row.parcel_id, row.sequence)))
  return {
    endedIds: rows.filter((row) => row.state >= DELIVERY_STATE.delivered && row.queued_at_ms <= untilMs).map(({ id }) => id),
    missing: copies.filter(({ parcelId, sequence }) => !known.has(nameOf(parcelId, sequence))),
  }
}

/** Returns the sequences of the events of which the endpoint has a delivery in any state. */
export async function findQueued(
  session: Session,
  { endpointId, events }: { readonly endpointId: string; readonly events: readonly Pick<Copy, 'parcelId' | 'sequence'>[] },
): Promise<ReadonlySet<number>> {
  if (events.length === 0) return new Set()
  const parcelIds = [...new Set(events.map(({ parcelId }) => parcelId))]
  const sequences = events.map(({ sequence }) => sequence)
  const rows = await session.all(sameEvents, { endpointId: Number(endpointId), parcelIds, sequences })
  return new Set(rows.map(({ sequence }) => sequence))
}

/** Inserts a delivery in the state `behind` for each event that has no delivery. Returns the number of inserted rows. */
export async function insertCopies(
  session: Session,
  copies: readonly Copy[],
  queued: { readonly endpointId: number; readonly queuedAtMs: number; readonly nowMs: number },
): Promise<number> {
  const inserted = await Promise.all(copies.map((copy) => session.run(insertBehind, { ...copy, ...queued })))
  return inserted.reduce((sum, { rows }) => sum + rows, 0)
}

import { sql } from 'kysely'
import {
  type AttemptRecord,
  EVENT_READ_MAX,
  type FoundDelivery,
  type ListedDelivery,
  readToldEvent,
  type SentEvent,
  type ToldEvent,
} from '../../domain/delivery/delivery-list.ts'
import { decodeEndpointTarget } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadIdentifiersOf } from '../history/parcels.ts'
import { statement } from '../statement.ts'
import { acceptedAttempt, type DeliveryRow, decodeAttempt, decodeDelivery } from './delivery-codec.ts'

const sentOf = statement<{ id: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .innerJoin('endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .select((of) => [
      'endpoint.settings',
      of
        .case()
        .when('delivery.inbox_id', 'is', null)
        .then(of.selectFrom('composed_event').select('composed_event.body').whereRef('composed_event.sequence', '=', 'delivery.sequence'))
        .else(of.selectFrom('inbox').select('inbox.body').whereRef('inbox.id', '=', 'delivery.inbox_id'))
        .end()
        .as('body'),
    ])
    .where('delivery.id', '=', p.id),
)

/** Loads the body and the URL of a delivery. */
export async function findSentEvent(session: Session, deliveryId: number): Promise<SentEvent> {
  const [row] = await session.all(sentOf, { id: deliveryId })
  if (row === undefined) throw new Error(`delivery ${deliveryId} has no endpoint`)
  return { ...decodeEndpointTarget(row.settings), body: row.body }
}

const pushedOf = statement<{ ids: readonly number[]; bytesMax: number }>()((db, p, { oneOf }) =>
  db
    .selectFrom('delivery')
    .innerJoin('inbox', 'inbox.id', 'delivery.inbox_id')
    .select(['delivery.id', 'inbox.body'])
    .where('delivery.id', 'in', oneOf(p.ids))
    .where((row) => row(row.fn<number>('length', ['inbox.body']), '<=', p.bytesMax)),
)
const composedOf = statement<{ ids: readonly number[]; bytesMax: number }>()((db, p, { oneOf, unindexed }) =>
  db
    .selectFrom('delivery')
    .innerJoin('composed_event', 'composed_event.sequence', 'delivery.sequence')
    .select(['delivery.id', 'composed_event.body'])
    .where('delivery.id', 'in', oneOf(p.ids))
    .where(unindexed(sql.ref<number | null>('delivery.inbox_id')), 'is', null)
    .where((row) => row(row.fn<number>('length', ['composed_event.body']), '<=', p.bytesMax)),
)
const lastAttempts = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('attempt')
    .selectAll()
    .where('id', 'in', (of) =>
      of
        .selectFrom('attempt as last')
        .select((row) => row.fn.max('last.id').as('id'))
        .where('last.delivery_id', 'in', oneOf(p.ids))
        .groupBy('last.delivery_id'),
    ),
)

/** Adds to deliveries the identifiers of their parcels, a summary of their events, and their last attempts. */
export async function withDetails(session: Session, rows: readonly DeliveryRow[]): Promise<readonly FoundDelivery[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const identifiers = await withIdentifiers(session, rows.map(decodeDelivery))
  const events = new Map<number, ToldEvent | null>()
  const asked = { ids, bytesMax: EVENT_READ_MAX }
  for (const { id, body } of [...(await session.all(pushedOf, asked)), ...(await session.all(composedOf, asked))]) {
    events.set(id, body === null ? null : readToldEvent(body))
  }
  const last = new Map<number, AttemptRecord>()
  for (const row of await session.all(lastAttempts, { ids })) last.set(row.delivery_id, decodeAttempt(row))
  return identifiers.map((delivery, at) => {
    const row = rows[at]
    const accepted = row === undefined ? null : acceptedAttempt(row)
    return { ...delivery, event: events.get(delivery.deliveryId) ?? null, lastAttempt: accepted ?? last.get(delivery.deliveryId) ?? null }
  })
}

export async function withIdentifiers<Listed extends ListedDelivery>(
  session: Session,
  deliveries: readonly Listed[],
): Promise<readonly (Listed & { readonly identifiers: readonly string[] })[]> {
  const rows = await loadIdentifiersOf(session, [...new Set(deliveries.map(({ parcelId }) => parcelId))])
  const byParcel = Map.groupBy(rows, (row) => row.parcel_id)
  return deliveries.map((delivery) => ({ ...delivery, identifiers: (byParcel.get(delivery.parcelId) ?? []).map(({ value }) => value) }))
}

import type { FoundDelivery, ListedDelivery, SentEvent } from '../../domain/delivery/delivery-list.ts'
import { decodeEndpointUrl } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadIdentifiersOf } from '../history/parcels.ts'
import { statement } from '../statement.ts'

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
  return { url: decodeEndpointUrl(row.settings), body: row.body }
}

/** Adds the identifiers of their parcels to deliveries. */
export async function withIdentifiers(session: Session, deliveries: readonly ListedDelivery[]): Promise<readonly FoundDelivery[]> {
  const rows = await loadIdentifiersOf(session, [...new Set(deliveries.map(({ parcelId }) => parcelId))])
  const byParcel = Map.groupBy(rows, (row) => row.parcel_id)
  return deliveries.map((delivery) => ({ ...delivery, identifiers: (byParcel.get(delivery.parcelId) ?? []).map(({ value }) => value) }))
}

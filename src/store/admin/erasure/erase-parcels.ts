import { sql } from 'kysely'
import type { ErasedCounts, NamedEndpoint } from '../../../domain/admin/erasure.ts'
import { DELIVERY_STATE, decodeJoinOrigin } from '../../codec.ts'
import type { Session } from '../../engine.ts'
import { deleteParcels, loadIdentifiersOf } from '../../history/parcels.ts'
import { contentsUsedBy, listUnused } from '../../history/unused-contents.ts'
import { statement } from '../../statement.ts'

type OfParcels = { readonly ids: readonly number[] }

/** Joins all endpoints, even removed ones, because the index that finds the deliveries of a parcel begins with the endpoint. */
const deliveriesOf = statement<OfParcels>()((db, p, { rowsOf }) =>
  db
    .selectFrom('endpoint')
    .innerJoin(rowsOf(p.ids).as('parcel_of'), (join) => join.onTrue())
    .innerJoin('delivery', (join) =>
      join.onRef('delivery.endpoint_id', '=', 'endpoint.id').onRef('delivery.parcel_id', '=', 'parcel_of.value'),
    )
    .select([
      'delivery.id',
      'delivery.sequence',
      'delivery.inbox_id',
      'delivery.state',
      'delivery.attempts',
      'delivery.endpoint_id',
      'endpoint.name',
    ]),
)
const removeDeliveries = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('delivery').where('id', 'in', oneOf(p.ids)))
const removeAttempts = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('attempt').where('delivery_id', 'in', oneOf(p.ids)))
/** Finds the events of these parcels that the relay has composed from polls. */
const composedOf = statement<OfParcels>()((db, p, { oneOf }) =>
  db
    .selectFrom('sighting')
    .innerJoin('feed', 'feed.entry', 'sighting.sequence')
    .select('feed.sequence')
    .distinct()
    .where('sighting.parcel_id', 'in', oneOf(p.ids))
    .where('feed.payload_ref', '<=', sql.lit(0)),
)
const removeComposed = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('composed_event').where('sequence', 'in', oneOf(p.ids)))
/** A row counts failures of many deliveries, but names only the last. So also removes rows whose answer contains an erased identifier. */
const removeFailures = statement<{ endpointIds: readonly number[]; deliveryIds: readonly number[]; names: readonly string[] }>()(
  (db, p, { oneOf, containsAny }) =>
    db
      .deleteFrom('failure')
      .where('endpoint_id', 'in', oneOf(p.endpointIds))
      .where((of) => of.or([of('delivery_id', 'in', oneOf(p.deliveryIds)), containsAny(sql.ref<Uint8Array | null>('answer'), p.names)])),
)
const removePushes = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('inbox').where('parcel_id', 'in', oneOf(p.ids)))
const removeExpected = statement<OfParcels>()((db, p, { oneOf }) =>
  db
    .deleteFrom('expected_push')
    .where('entry', 'in', (of) => of.selectFrom('sighting').select('sighting.sequence').where('parcel_id', 'in', oneOf(p.ids))),
)
const removeSightings = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('sighting').where('parcel_id', 'in', oneOf(p.ids)))
const removeAnswers = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('answer').where('parcel_id', 'in', oneOf(p.ids)))
const removeLanguages = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('language_asked').where('parcel_id', 'in', oneOf(p.ids)))
const removeIdentifiers = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('identifier').where('parcel_id', 'in', oneOf(p.ids)))
const joinsInto = statement<OfParcels>()((db, p, { oneOf }) =>
  db.selectFrom('audit').select(['sequence', 'detail']).where('parcel_id', 'in', oneOf(p.ids)),
)
const scrubJoins = statement<{ sequences: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .updateTable('audit')
    .set({ detail: sql.lit('{"identifiers":[]}') })
    .where('sequence', 'in', oneOf(p.sequences)),
)

export interface ErasedRows {
  readonly counts: Omit<ErasedCounts, 'mentions'>
  /** The endpoints that may have received events of the parcels. */
  readonly endpoints: readonly NamedEndpoint[]
  /** The erased identifiers. */
  readonly names: readonly { readonly value: string; readonly parcelId: number }[]
  /** The ids of the contents that the parcels used. The engine must then call `removeContents`, which removes contents that no parcel uses. */
  readonly contents: readonly number[]
}

export const NO_PARCELS: Omit<ErasedRows, 'contents'> = {
  counts: { parcels: 0, identifiers: 0, sightings: 0, answers: 0, pushes: 0, deliveries: 0, attempts: 0, texts: 0 },
  endpoints: [],
  names: [],
}

/** Deletes parcels with all that belongs to them, except their contents. The caller must lock the parcels against other writers. */
export async function eraseParcels(session: Session, ids: readonly number[]): Promise<ErasedRows> {
  const names = (await loadIdentifiersOf(session, ids)).map((row) => ({ value: row.value, parcelId: row.parcel_id }))
  const values = names.map(({ value }) => value)
  const deliveries = await eraseDeliveries(session, ids, values)
  const { rows: pushes } = await session.run(removePushes, { ids })
  session.enqueueWrite(removeExpected, { ids })
  session.enqueueWrite(removeComposed, { ids: (await session.all(composedOf, { ids })).map(({ sequence }) => sequence) })
  const contents = await contentsUsedBy(session, ids)
  const { rows: sightings } = await session.run(removeSightings, { ids })
  const texts = (await listUnused(session, contents)).length
  const { rows: answers } = await session.run(removeAnswers, { ids })
  session.enqueueWrite(removeLanguages, { ids })
  await eraseJoins(session, ids)
  const { rows: identifiers } = await session.run(removeIdentifiers, { ids })
  await deleteParcels(session, ids)
  return {
    counts: { ...deliveries.counts, parcels: ids.length, identifiers, sightings, answers, pushes, texts },
    endpoints: deliveries.endpoints,
    names,
    contents,
  }
}

async function eraseDeliveries(
  session: Session,
  ids: readonly number[],
  names: readonly string[],
): Promise<{ readonly counts: Pick<ErasedCounts, 'deliveries' | 'attempts'>; readonly endpoints: readonly NamedEndpoint[] }> {
  const rows = await session.all(deliveriesOf, { ids })
  if (rows.length === 0) return { counts: { deliveries: 0, attempts: 0 }, endpoints: [] }
  const deliveryIds = rows.map(({ id }) => id)
  const { rows: attempts } = await session.run(removeAttempts, { ids: deliveryIds })
  const endpointIds = [...new Set(rows.map((row) => row.endpoint_id))]
  session.enqueueWrite(removeFailures, { endpointIds, deliveryIds, names })
  session.enqueueWrite(removeComposed, { ids: rows.filter((row) => row.inbox_id === null).map(({ sequence }) => sequence) })
  session.enqueueWrite(removeDeliveries, { ids: deliveryIds })
  const sent = rows.filter((row) => row.attempts > 0 || row.state === DELIVERY_STATE.delivered)
  const endpoints = new Map(sent.map((row) => [row.endpoint_id, { id: String(row.endpoint_id), name: row.name }]))
  const plainlyAccepted = sent.filter(({ state }) => state === DELIVERY_STATE.delivered).length
  return { counts: { deliveries: rows.length, attempts: Math.max(attempts, plainlyAccepted) }, endpoints: [...endpoints.values()] }
}

/** Empties the audit records of joins into these parcels, and of earlier joins into the parcels that were joined. */
async function eraseJoins(session: Session, into: readonly number[]): Promise<void> {
  const joins = await session.all(joinsInto, { ids: into })
  if (joins.length === 0) return
  session.enqueueWrite(scrubJoins, { sequences: joins.map(({ sequence }) => sequence) })
  const joined = joins.flatMap(({ detail }) => decodeJoinOrigin(detail) ?? [])
  if (joined.length > 0) await eraseJoins(session, joined)
}

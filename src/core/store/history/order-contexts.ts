import type { Selectable } from 'kysely'
import { type KeptContext, lastContext, type OrderContext } from '../../domain/history/order-context.ts'
import type { Session } from '../engine.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'

type Row = Selectable<Tables['order_context']>

const ofParcels = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('order_context').selectAll().where('parcel_id', 'in', oneOf(p.ids)),
)
const upsert = statement<ReturnType<typeof contextRow>>()((db, p) => {
  const facts = { sequence: p.sequence, reference: p.reference, labels: p.labels, note: p.note }
  return db
    .insertInto('order_context')
    .values({ parcel_id: p.parcelId, ...facts })
    .onConflict((conflict) => conflict.column('parcel_id').doUpdateSet(facts))
})
const remove = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('order_context').where('parcel_id', 'in', oneOf(p.ids)),
)
export interface ContextOfParcel extends KeptContext {
  readonly parcelId: number
}

export function contextRow({ parcelId, sequence, reference, labels, note }: ContextOfParcel) {
  return { parcelId, sequence, reference, labels: JSON.stringify(labels), note }
}

function decodeContext({ parcel_id: parcelId, sequence, reference, labels, note }: Row): ContextOfParcel {
  return { parcelId, sequence, reference, labels: decodeLabels(labels), note }
}

function decodeLabels(labels: string): OrderContext['labels'] {
  // Only `contextRow` writes this, so its shape is certain.
  const decoded: OrderContext['labels'] = JSON.parse(labels)
  return decoded
}

/** Loads what apps said of the orders of parcels. A parcel of which nobody said anything is absent. */
export async function loadContexts(session: Session, parcelIds: readonly number[]): Promise<ReadonlyMap<number, ContextOfParcel>> {
  if (parcelIds.length === 0) return new Map()
  return new Map((await session.all(ofParcels, { ids: parcelIds })).map((row) => [row.parcel_id, decodeContext(row)]))
}

export function saveContext(session: Session, context: ContextOfParcel): void {
  session.enqueueWrite(upsert, contextRow(context))
}

export function removeContexts(session: Session, parcelIds: readonly number[]): void {
  session.enqueueWrite(remove, { ids: parcelIds })
}

/** Gives the parcel of a join what was said last of any of the parcels. `contexts`: what they had. */
export function moveContexts(session: Session, contexts: ReadonlyMap<number, ContextOfParcel>, into: number): void {
  const last = lastContext([...contexts.values()])
  if (last === null) return
  removeContexts(session, [...contexts.keys()])
  saveContext(session, { ...last, parcelId: into })
}

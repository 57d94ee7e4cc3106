import type { Selectable } from 'kysely'
import { type KeptContext, lastContext } from '../../domain/history/order-context.ts'
import { decodeLabels } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import type { Tables } from '../tables.ts'

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
const withReference = statement<{ reference: string; after: number; limit: number }>()((db, p) =>
  db
    .selectFrom('order_context')
    .select('parcel_id')
    .where('reference', '=', p.reference)
    .where('parcel_id', '>', p.after)
    .orderBy('parcel_id')
    .limit(p.limit),
)

const holdersOf = statement<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom('order_context')
    .select('parcel_id')
    .select((of) => of.selectFrom('parcel').select('id').whereRef('parcel.id', '=', 'order_context.parcel_id').as('holder'))
    .where('parcel_id', '>', p.after)
    .orderBy('parcel_id')
    .limit(p.limit),
)

/** Removes what is said of parcels that are gone. Looks at some rows, and returns the parcel after which to look on; null: that was all. */
export async function removeLostContexts(
  session: Session,
  request: { readonly after: number; readonly limit: number },
): Promise<number | null> {
  const rows = await session.all(holdersOf, request)
  const lost = rows.flatMap((row) => (row.holder === null ? [row.parcel_id] : []))
  if (lost.length > 0) removeContexts(session, lost)
  return rows.length < request.limit ? null : (rows.at(-1)?.parcel_id ?? null)
}

export interface ContextOfParcel extends KeptContext {
  readonly parcelId: number
}

export function contextRow({ parcelId, sequence, reference, labels, note }: ContextOfParcel) {
  return { parcelId, sequence, reference, labels: JSON.stringify(labels), note }
}

function decodeContext({ parcel_id: parcelId, sequence, reference, labels, note }: Row): ContextOfParcel {
  return { parcelId, sequence, reference, labels: decodeLabels(labels), note }
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

/** Finds the parcels of an order, in the order of their ids. */
export async function findByReference(
  session: Session,
  request: { readonly reference: string; readonly after: number; readonly limit: number },
): Promise<readonly number[]> {
  return (await session.all(withReference, request)).map((row) => row.parcel_id)
}

import type { IdentifierState, ParcelState } from '../../domain/history/parcel-state.ts'
import { pollableFromMs, pollableNow, type Refusable } from '../../domain/identifiers.ts'
import { decodeParcel, encodeParcel } from '../codec.ts'
import type { Session } from '../engine.ts'
import { rowOf, statement } from '../statement.ts'
import { COLUMNS, type Tables } from '../tables.ts'

const insertNew = statement<{ nowMs: number }>()((db, p) =>
  db.insertInto('parcel').values({ activated_at_ms: p.nowMs, entry_count: 0, failures: 0, is_full: 0 }).returningAll(),
)
const selectParcel = statement<{ id: number }>()((db, p) => db.selectFrom('parcel').selectAll().where('id', '=', p.id))
const selectParcels = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('parcel').selectAll().where('id', 'in', oneOf(p.ids)),
)
const deleteRows = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) => db.deleteFrom('parcel').where('id', 'in', oneOf(p.ids)))

type ParcelRow = { [Column in keyof ReturnType<typeof encodeParcel>]: ReturnType<typeof encodeParcel>[Column] }

const { id: _id, ...ALL } = COLUMNS.parcel
const { next_poll_at_ms: _next, stopped: _stopped, ...FACTS } = ALL

const updateAllColumns = statement<ParcelRow>()((db, p) =>
  db.updateTable('parcel').set(rowOf<Pick<ParcelRow, keyof typeof ALL>>(ALL, p)).where('id', '=', p.id),
)
const insertAllColumns = statement<ParcelRow>()((db, p) => db.insertInto('parcel').values(rowOf(COLUMNS.parcel, p)))
/** The row with the highest id may have been deleted, so `max(id)` could be too low. Ids are never reused. */
const lastGiven = statement()((db) => db.selectFrom('sqlite_sequence').select('seq').where('name', '=', 'parcel'))
/** Leaves out the indexed columns, because SQLite rewrites the index entry of every column that is set, even to the same value. */
const updateFacts = statement<ParcelRow>()((db, p) =>
  db.updateTable('parcel').set(rowOf<Pick<ParcelRow, keyof typeof FACTS>>(FACTS, p)).where('id', '=', p.id),
)

export async function createParcel(session: Session, nowMs: number): Promise<ParcelState> {
  const [row] = await session.all(insertNew, { nowMs })
  if (row === undefined) throw new Error('the insert of a parcel returned no row')
  return decodeParcel(row)
}

export function insertParcel(session: Session, state: ParcelState): void {
  session.enqueueWrite(insertAllColumns, encodeParcel(state))
}

/** Returns the highest parcel id ever assigned; 0: none. */
export async function lastParcelId(session: Session): Promise<number> {
  const [row] = await session.all(lastGiven, {})
  return row?.seq ?? 0
}

export async function findParcel(session: Session, parcelId: number): Promise<ParcelState | null> {
  const [row] = await session.all(selectParcel, { id: parcelId })
  return row === undefined ? null : decodeParcel(row)
}

export async function findParcels(session: Session, parcelIds: readonly number[]): Promise<readonly ParcelState[]> {
  return (await session.all(selectParcels, { ids: parcelIds })).map(decodeParcel)
}

export async function loadParcel(session: Session, parcelId: number): Promise<ParcelState> {
  const state = await findParcel(session, parcelId)
  if (state === null) throw new Error(`an identifier in the store names parcel ${parcelId}, which does not exist`)
  return state
}

/** `before`: the state that is stored now; null: the caller does not know it. */
export function saveParcel(session: Session, state: ParcelState, before: ParcelState | null): void {
  const sameSchedule = before !== null && before.nextPollAtMs === state.nextPollAtMs && before.stopped === state.stopped
  session.enqueueWrite(sameSchedule ? updateFacts : updateAllColumns, encodeParcel(state))
}

export async function deleteParcels(session: Session, parcelIds: readonly number[]): Promise<void> {
  await session.run(deleteRows, { ids: parcelIds })
}

const selectIdentifier = statement<{ value: string }>()((db, p) =>
  db.selectFrom('identifier').select(['value', 'parcel_id', 'is_tracking_id']).where('value', '=', p.value),
)
const selectIdentifiers = statement<{ values: readonly string[] }>()((db, p, { oneOfTexts }) =>
  db.selectFrom('identifier').select(['value', 'parcel_id', 'is_tracking_id']).where('value', 'in', oneOfTexts(p.values)),
)
const identifiersOf = statement<{ parcelId: number }>()((db, p) =>
  db.selectFrom('identifier').selectAll().where('parcel_id', '=', p.parcelId),
)
const identifiersOfAll = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('identifier').selectAll().where('parcel_id', 'in', oneOf(p.ids)),
)
const refusalsOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('identifier')
    .innerJoin('parcel', 'parcel.id', 'identifier.parcel_id')
    .select(['parcel.id', 'parcel.last_seen_at_ms', 'identifier.refused_at_ms', 'identifier.is_tracking_id', 'identifier.value'])
    .where('identifier.parcel_id', 'in', oneOf(p.ids)),
)
const upsertIdentifier = statement<ReturnType<typeof identifierRow>>()((db, p) =>
  db
    .insertInto('identifier')
    .values({ value: p.value, parcel_id: p.parcelId, is_tracking_id: p.isTrackingId })
    .onConflict((conflict) => conflict.column('value').doUpdateSet({ is_tracking_id: p.isTrackingId })),
)
const moveAll = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf }) =>
  db.updateTable('identifier').set({ parcel_id: p.into }).where('parcel_id', 'in', oneOf(p.ids)),
)
const refuse = statement<{ value: string; nowMs: number }>()((db, p) =>
  db.updateTable('identifier').set({ refused_at_ms: p.nowMs }).where('value', '=', p.value),
)

export async function findIdentifier(session: Session, value: string): Promise<IdentifierState | null> {
  const [row] = await session.all(selectIdentifier, { value })
  return row === undefined ? null : decodeIdentifier(row)
}

/** Finds identifiers by their values, in no particular order. An unknown identifier is absent. */
export async function lookUpIdentifiers(session: Session, values: readonly string[]): Promise<readonly IdentifierState[]> {
  return (await session.all(selectIdentifiers, { values })).map(decodeIdentifier)
}

export function decodeIdentifier(row: Pick<Tables['identifier'], 'value' | 'parcel_id' | 'is_tracking_id'>): IdentifierState {
  return { value: row.value, parcelId: row.parcel_id, isTrackingId: row.is_tracking_id === 1 }
}

export function saveIdentifier(session: Session, identifier: IdentifierState): void {
  session.enqueueWrite(upsertIdentifier, identifierRow(identifier))
}

export function identifierRow({ value, parcelId, isTrackingId }: IdentifierState) {
  return { value, parcelId, isTrackingId: isTrackingId ? 1 : 0 }
}

export async function moveIdentifiers(session: Session, from: readonly number[], into: number): Promise<void> {
  await session.run(moveAll, { ids: from, into })
}

export async function markRefused(session: Session, value: string, nowMs: number): Promise<void> {
  await session.run(refuse, { value, nowMs })
}

/** Loads a parcel's identifiers: tracking numbers first, then tracking ids. */
export async function loadIdentifiers(session: Session, parcelId: number): Promise<readonly Tables['identifier'][]> {
  return inOrder(await session.all(identifiersOf, { parcelId }))
}

/** Like `loadIdentifiers`, for several parcels. */
export async function loadIdentifiersOf(session: Session, parcelIds: readonly number[]): Promise<readonly Tables['identifier'][]> {
  return inOrder(await session.all(identifiersOfAll, { ids: parcelIds }))
}

/** Finds the identifiers of each parcel, in the order of `loadIdentifiers`. A parcel that has none, or does not exist, is absent. */
export async function loadNames(session: Session, parcelIds: readonly number[]): Promise<ReadonlyMap<number, readonly string[]>> {
  if (parcelIds.length === 0) return new Map()
  const rows = Map.groupBy(await loadIdentifiersOf(session, parcelIds), (row) => row.parcel_id)
  return new Map([...rows].map(([parcelId, ofParcel]) => [parcelId, ofParcel.map(({ value }) => value)]))
}

/** Sorts identifiers as SQLite's index does, because PostgreSQL returns them in no certain order. */
function inOrder<Row extends Omit<Tables['identifier'], 'parcel_id'>>(rows: readonly Row[]): readonly Row[] {
  const refused = (row: Row) => row.refused_at_ms ?? Number.NEGATIVE_INFINITY
  return rows.toSorted((a, b) => a.is_tracking_id - b.is_tracking_id || compare(refused(a), refused(b)) || compare(a.value, b.value))
}

function compare<Value extends string | number>(one: Value, other: Value): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** Returns when the carrier may first be asked about each parcel, in epoch milliseconds. A parcel without identifiers is absent (DOMAIN 6.3). */
export async function pollableFrom(session: Session, parcelIds: readonly number[]): Promise<ReadonlyMap<number, number>> {
  if (parcelIds.length === 0) return new Map()
  const rows = Map.groupBy(await session.all(refusalsOf, { ids: parcelIds }), ({ id }) => id)
  const from = new Map<number, number>()
  for (const [parcelId, identifiers] of rows) {
    const fromMs = pollableFromMs(identifiers.map(refusable), identifiers[0]?.last_seen_at_ms ?? null)
    if (fromMs !== null) from.set(parcelId, fromMs)
  }
  return from
}

/** Returns the identifiers that may be polled now: tracking numbers first, then tracking ids (DOMAIN 6.3). */
export async function pollableIdentifiers(session: Session, parcelId: number, nowMs: number): Promise<readonly string[]> {
  const rows = inOrder(await session.all(refusalsOf, { ids: [parcelId] }))
  return pollableNow(rows.map(refusable), rows[0]?.last_seen_at_ms ?? null, nowMs).map(({ value }) => value)
}

function refusable(row: Pick<Tables['identifier'], 'value' | 'refused_at_ms'>): Refusable & { readonly value: string } {
  return { value: row.value, refusedAtMs: row.refused_at_ms }
}

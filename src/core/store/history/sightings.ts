import { listedIn } from '../../domain/history/pull-response.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import { decodeAudience, decodeExtra, decodeListed, encodeAudience, encodeExtra, encodeTellings } from '../codec.ts'
import type { Session } from '../engine.ts'
import { decodeInstant, encodeInstant } from '../instant-codec.ts'
import { COLUMNS, type Tables } from '../schema.ts'
import { rowOf, statement } from '../statement.ts'
import type { Contents, StoredContent } from './contents.ts'

const ofParcel = statement<{ parcelId: number }>()((db, p) => db.selectFrom('sighting').selectAll().where('parcel_id', '=', p.parcelId))

const ofSecond = statement<{ parcelId: number; fromMs: number; toMs: number }>()((db, p) =>
  db.selectFrom('sighting').selectAll().where('parcel_id', '=', p.parcelId).where('at_ms', '>=', p.fromMs).where('at_ms', '<', p.toMs),
)

const upsert = statement<ReturnType<typeof sightingRow<number>>>()((db, p) =>
  db
    .insertInto('sighting')
    .values(rowOf(COLUMNS.sighting, p))
    .onConflict((conflict) =>
      conflict.columns(['parcel_id', 'at_ms', 'time_form', 'content_id', 'listing', 'ordinal']).doUpdateSet({
        asked_at_ms: p.asked_at_ms,
        sequence: p.sequence,
        learnt_at_ms: p.learnt_at_ms,
        audience: p.audience,
        tellings: p.tellings,
        extra: p.extra,
      }),
    ),
)

const ofParcels = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('sighting').selectAll().where('parcel_id', 'in', oneOf(p.ids)),
)

const KEY = ['at_ms', 'time_form', 'content_id', 'listing', 'ordinal'] as const
const FACTS = [...KEY, 'asked_at_ms', 'sequence', 'learnt_at_ms', 'audience', 'tellings', 'extra'] as const

/** Copies sightings to another parcel. A sighting that several parcels have is copied from the parcel with the lowest id. */
const copyInto = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf, integer }) =>
  db
    .insertInto('sighting')
    .columns(['parcel_id', ...FACTS])
    .expression((of) =>
      of
        .selectFrom('sighting')
        .select([integer(p.into).as('parcel_id'), ...FACTS])
        .where('parcel_id', 'in', oneOf(p.ids))
        .orderBy('parcel_id'),
    )
    .onConflict((conflict) => conflict.columns(['parcel_id', ...KEY]).doNothing()),
)
const deleteOfParcels = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('sighting').where('parcel_id', 'in', oneOf(p.ids)),
)

/** `second`: loads only the sightings of this second (counted from the epoch); null: all. */
export async function loadSightings(
  session: Session,
  contents: Contents,
  parcelId: number,
  second: number | null,
): Promise<readonly KeptSighting[]> {
  const rows =
    second === null
      ? await session.all(ofParcel, { parcelId })
      : await session.all(ofSecond, { parcelId, fromMs: second * 1000, toMs: second * 1000 + 1000 })
  return await decodeSightings(session, contents, rows)
}

async function decodeSightings(
  session: Session,
  contents: Contents,
  rows: readonly Tables['sighting'][],
): Promise<readonly KeptSighting[]> {
  const unknown = new Set<number>()
  for (const { content_id: id } of rows) if (contents.recallContent(id) === undefined) unknown.add(id)
  const read = unknown.size === 0 ? null : await contents.read(session, [...unknown])
  return rows.map((row) => {
    const content = contents.recallContent(row.content_id) ?? read?.get(row.content_id)
    if (content === undefined) throw new Error(`a sighting in the store names content ${row.content_id}, which does not exist`)
    return decodeSighting(row, content)
  })
}

export async function loadSightingsOf(
  session: Session,
  contents: Contents,
  parcelIds: readonly number[],
): Promise<ReadonlyMap<number, readonly KeptSighting[]>> {
  const byParcel = new Map<number, KeptSighting[]>()
  if (parcelIds.length === 0) return byParcel
  const rows = await session.all(ofParcels, { ids: parcelIds })
  for (const [at, kept] of (await decodeSightings(session, contents, rows)).entries()) {
    const parcelId = rows[at]?.parcel_id ?? 0
    const others = byParcel.get(parcelId)
    if (others === undefined) byParcel.set(parcelId, [kept])
    else others.push(kept)
  }
  return byParcel
}

export function decodeSighting(row: Tables['sighting'], { content, json }: StoredContent): KeptSighting {
  return {
    sighting: { ...content, instant: decodeInstant(row.at_ms, row.time_form), extra: decodeExtra(row.extra) },
    content: json,
    listing: row.listing,
    ordinal: row.ordinal,
    askedAtMs: row.asked_at_ms,
    sequence: row.sequence,
    learntAtMs: row.learnt_at_ms,
    audience: decodeAudience(row.audience, row.tellings),
  }
}

/** Inserts a sighting. If it is stored already, updates the columns that are not part of its key. */
export function saveSighting(session: Session, parcelId: number, contentId: number, kept: KeptSighting): void {
  session.enqueueWrite(upsert, sightingRow(parcelId, contentId, kept))
}

export function sightingRow<ContentId extends number | null>(parcelId: number, contentId: ContentId, kept: KeptSighting) {
  return {
    parcel_id: parcelId,
    ...encodeInstant(kept.sighting.instant),
    content_id: contentId,
    listing: kept.listing,
    ordinal: kept.ordinal,
    asked_at_ms: kept.askedAtMs,
    sequence: kept.sequence,
    learnt_at_ms: kept.learntAtMs,
    audience: encodeAudience(kept.audience),
    tellings: encodeTellings(kept.audience),
    extra: encodeExtra(kept.sighting.extra),
  }
}

/** Moves sightings to another parcel. If several parcels had the same sighting, the caller then saves the merged sighting. */
export async function moveSightings(session: Session, from: readonly number[], into: number): Promise<void> {
  await session.run(copyInto, { ids: from, into })
  await session.run(deleteOfParcels, { ids: from })
}

const orderAnswers = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('answer')
    .select(['parcel_id', 'language', 'body', 'listed'])
    .where('parcel_id', 'in', oneOf(p.ids))
    .where('decides_order', '=', 1),
)

/**
 * For each parcel, one stored answer decides the order of entries with the same time. Returns the `listedId` of each sighting of that answer, in
 * its order, by parcel id. The answers are parsed each time, because few parcels have such entries.
 */
export async function loadOrders(session: Session, parcelIds: readonly number[]): Promise<ReadonlyMap<number, readonly string[]>> {
  const orders = new Map<number, readonly string[]>()
  if (parcelIds.length === 0) return orders
  for (const { parcel_id: parcelId, language, body, listed } of await session.all(orderAnswers, { ids: parcelIds })) {
    const order = body === null ? decodeListed(listed) : listedIn(body, language)
    if (order !== null) orders.set(parcelId, order)
  }
  return orders
}

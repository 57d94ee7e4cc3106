import { listedIn } from '../../domain/history/pull-response.ts'
import type { KeptSighting } from '../../domain/history/sightings.ts'
import type { Instant } from '../../domain/instant.ts'
import { decodeAudience, decodeExtra, decodeListed, encodeAudience, encodeExtra, encodeTellings } from '../codec.ts'
import type { Session } from '../engine.ts'
import { rowOf, statement } from '../statement.ts'
import { COLUMNS, type Tables } from '../tables.ts'
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

/**
 * The column `time_form` says how a time is written, so that it is served as it came:
 *
 *   0          2026-03-01T10:00:00Z
 *   1          2026-03-01T10:00:00.250Z
 *   2          2026-03-01T10:00Z
 *   2000000    2026-03-01T10:00:00.25Z        two digits
 *   7000123    2026-03-01T10:00:00.2500123Z   seven digits; after the milliseconds comes 0123
 */
const SECOND = 0
const MILLISECOND = 1
const MINUTE = 2
const PER_DIGIT = 1_000_000

const MINUTE_CHARS = 'YYYY-MM-DDTHH:MM'.length
const SECOND_CHARS = 'YYYY-MM-DDTHH:MM:SS'.length
const MILLISECOND_CHARS = 'YYYY-MM-DDTHH:MM:SS.mmm'.length

/** Encodes a time with its form. `parseInstant` has accepted the text, so its length shows the form. */
export function encodeInstant({ atMs, text }: Instant): { readonly at_ms: number; readonly time_form: number } {
  return { at_ms: atMs, time_form: formOf(text) }
}

function formOf(text: string): number {
  const chars = text.length - 'Z'.length
  if (chars === MILLISECOND_CHARS) return MILLISECOND
  if (chars === SECOND_CHARS) return SECOND
  if (chars === MINUTE_CHARS) return MINUTE
  const digits = chars - SECOND_CHARS - '.'.length
  return digits * PER_DIGIT + Number(text.slice(MILLISECOND_CHARS, chars))
}

const DAY_MS = 86_400_000
/** The beginnings of the texts of times, by their day since the epoch. */
const days = new Map<number, string>()
const DAYS_KEPT = 1000
const TWO_DIGITS = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, '0'))

/** Writes a time as `toISOString` does, which takes three times as long. Each answer and each page of the feed writes many. */
export function isoText(atMs: number): string {
  const day = Math.floor(atMs / DAY_MS)
  let date = days.get(day)
  if (date === undefined) {
    if (days.size >= DAYS_KEPT) days.clear()
    date = new Date(day * DAY_MS).toISOString().slice(0, -'HH:MM:SS.mmmZ'.length)
    days.set(day, date)
  }
  const ofDay = atMs - day * DAY_MS
  const [seconds, fraction] = [Math.floor(ofDay / 1000), ofDay % 1000]
  const minutes = Math.floor(seconds / 60)
  const time = `${TWO_DIGITS[Math.floor(minutes / 60)]}:${TWO_DIGITS[minutes % 60]}:${TWO_DIGITS[seconds % 60]}`
  return `${date}${time}.${fraction < 100 ? `0${TWO_DIGITS[fraction]}` : fraction}Z`
}

/** Restores the time exactly as it was written (DOMAIN 2.2). */
function decodeInstant(atMs: number, form: number): Instant {
  const text = isoText(atMs)
  if (form === MILLISECOND) return { atMs, text }
  if (form === SECOND) return { atMs, text: `${text.slice(0, SECOND_CHARS)}Z` }
  if (form === MINUTE) return { atMs, text: `${text.slice(0, MINUTE_CHARS)}Z` }
  const digits = Math.floor(form / PER_DIGIT)
  const beyond = String(form % PER_DIGIT).padStart(Math.max(0, digits - 3), '0')
  const fraction = `${text.slice(SECOND_CHARS + 1, MILLISECOND_CHARS)}${beyond}`.slice(0, digits)
  return { atMs, text: `${text.slice(0, SECOND_CHARS)}.${fraction}Z` }
}

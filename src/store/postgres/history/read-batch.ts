import { sql } from 'kysely'
import { parseAllAnswer } from '../../../domain/history/pull-response.ts'
import { type KeptSighting, sightingId, sightingsOf } from '../../../domain/history/sightings.ts'
import type { KnownParcel } from '../../../domain/history/snapshot.ts'
import { REFUSAL_HOLDS_MS } from '../../../domain/identifiers.ts'
import { decodeAnswer } from '../../codec.ts'
import type { Session } from '../../engine.ts'
import { secondOf } from '../../history/batch-names.ts'
import { decodeSighting } from '../../history/sightings.ts'
import { listPushes } from '../../ingest/inbox.ts'
import type { Tables } from '../../schema.ts'
import { statement } from '../../statement.ts'
import { rawStatement } from '../raw-statement.ts'
import type { TransactionContents } from './postgres-contents.ts'

/** Where a batch is loaded from, within its transaction. */
export interface BatchSource {
  readonly session: Session
  readonly contents: TransactionContents
}

export const findTwins = rawStatement<{ parcelIds: readonly number[]; digests: readonly Uint8Array[] }>()(
  (p) => sql<{ id: number; parcel_id: number; nth: number }>`
    select inbox.id, inbox.parcel_id, u.nth from unnest(${p.parcelIds}::bigint[], ${p.digests}::bytea[]) with ordinality as u (parcel_id, digest, nth)
    join inbox on inbox.parcel_id = u.parcel_id and inbox.digest = u.digest`,
)

type SightingRow = Tables['sighting'] & { readonly json: string }

/** Looked up for each row: a join may be planned to read all contents in order. */
const json = sql`(select json from content where content.id = sighting.content_id) as json`

const ofSeconds = rawStatement<{ parcelIds: readonly number[]; fromMs: readonly number[] }>()(
  (p) => sql<SightingRow>`
    select sighting.*, ${json} from unnest(${p.parcelIds}::bigint[], ${p.fromMs}::bigint[]) as u (parcel_id, from_ms)
    join sighting on sighting.parcel_id = u.parcel_id and sighting.at_ms >= u.from_ms and sighting.at_ms < u.from_ms + 1000`,
)
const ofParcels = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql<SightingRow>`select sighting.*, ${json} from sighting where sighting.parcel_id = any(${p.ids}::bigint[])`,
)

function decodeRow({ contents }: BatchSource, row: SightingRow): KeptSighting {
  return decodeSighting(row, contents.note(row.content_id, row.json))
}

/** By parcel and second; a second without sightings is there, and empty. */
export async function readSeconds(
  source: BatchSource,
  asked: readonly { readonly parcelId: number; readonly second: number }[],
): Promise<ReadonlyMap<number, Map<number, KeptSighting[]>>> {
  const found = new Map<number, Map<number, KeptSighting[]>>()
  if (asked.length === 0) return found
  for (const { parcelId, second } of asked) {
    const seconds = found.get(parcelId) ?? new Map<number, KeptSighting[]>()
    found.set(parcelId, seconds.set(second, []))
  }
  const columns = { parcelIds: asked.map(({ parcelId }) => parcelId), fromMs: asked.map(({ second }) => second * 1000) }
  for (const row of await source.session.all(ofSeconds, columns)) {
    found.get(row.parcel_id)?.get(secondOf(row.at_ms))?.push(decodeRow(source, row))
  }
  return found
}

export async function readWhole(source: BatchSource, parcelIds: readonly number[]): Promise<ReadonlyMap<number, readonly KeptSighting[]>> {
  if (parcelIds.length === 0) return new Map()
  const byParcel = Map.groupBy(await source.session.all(ofParcels, { ids: parcelIds }), (row) => row.parcel_id)
  return new Map([...byParcel].map(([parcelId, rows]) => [parcelId, rows.map((row) => decodeRow(source, row))]))
}

const answersOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('answer')
    .select(['parcel_id', 'language', 'digest', 'asked_at_ms', 'entry_count', 'is_flawed', 'head'])
    .where('parcel_id', 'in', oneOf(p.ids)),
)

export async function readAnswers(session: Session, parcelIds: readonly number[]) {
  if (parcelIds.length === 0) return new Map<number, ReturnType<typeof decodeAnswer>[]>()
  const byParcel = Map.groupBy(await session.all(answersOf, { ids: parcelIds }), (row) => row.parcel_id)
  return new Map([...byParcel].map(([parcelId, rows]) => [parcelId, rows.map(decodeAnswer)]))
}

const pollableOf = rawStatement<{ ids: readonly number[]; refusedBeforeMs: number }>()(
  (p) => sql<{ parcel_id: number }>`
    select distinct identifier.parcel_id from identifier join parcel on parcel.id = identifier.parcel_id
    where parcel.id = any(${p.ids}::bigint[]) and parcel.stopped = 'unknown'
      and (identifier.refused_at_ms is null or identifier.refused_at_ms <= ${p.refusedBeforeMs})`,
)

/** Of the parcels that the carrier did not know, those that it may be asked about. */
export async function readPollable(session: Session, parcelIds: readonly number[], nowMs: number): Promise<ReadonlySet<number>> {
  if (parcelIds.length === 0) return new Set()
  const rows = await session.all(pollableOf, { ids: parcelIds, refusedBeforeMs: nowMs - REFUSAL_HOLDS_MS })
  return new Set(rows.map((row) => row.parcel_id))
}

const orderAnswers = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('answer')
    .select(['parcel_id', 'language', 'body', 'asked_at_ms'])
    .where('parcel_id', 'in', oneOf(p.ids))
    .where('decides_order', '=', 1),
)

/** The sighting ids of order answers, in their order, read again from their bytes. */
export async function readOrders(session: Session, parcelIds: readonly number[]): Promise<ReadonlyMap<number, readonly string[]>> {
  const orders = new Map<number, readonly string[]>()
  if (parcelIds.length === 0) return orders
  for (const { parcel_id: parcelId, language, body, asked_at_ms: askedAtMs } of await session.all(orderAnswers, { ids: parcelIds })) {
    const reading = body === null ? null : parseAllAnswer(body, { asked: '', language, contentLanguage: null, askedAtMs })
    if (reading?.ok === true) orders.set(parcelId, sightingsOf(reading.observation).map(sightingId))
  }
  return orders
}

/** How many pushes are read in one go. */
const READ_AT_ONCE = 100

export async function readBodies(session: Session, parcelId: number): Promise<NonNullable<KnownParcel['bodies']>> {
  const bodies: { readonly inboxId: number; readonly body: Uint8Array }[] = []
  let after: Uint8Array | null = new Uint8Array()
  while (after !== null) {
    const kept: Awaited<ReturnType<typeof listPushes>> = await listPushes(session, { parcelId, after, limit: READ_AT_ONCE })
    for (const { inboxId, body } of kept) bodies.push({ inboxId, body })
    after = kept.length < READ_AT_ONCE ? null : (kept.at(-1)?.digest ?? null)
  }
  return bodies
}

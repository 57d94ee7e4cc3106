import { sql } from 'kysely'
import { type OrderContext, textsOfContext } from '../../core/domain/history/order-context.ts'
import { type NameSearch, namesInBody, searchFor, wordsInBody } from '../../core/domain/names-in-text.ts'
import { removeReportEvidence } from '../../core/store/admin/report-note-rows.ts'
import { DELIVERY_STATE, decodeJoinedOrders, decodeJoinOrigin } from '../../core/store/codec.ts'
import type { Session } from '../../core/store/engine.ts'
import { contentsUsedBy, listUnused } from '../../core/store/history/contents.ts'
import { loadContexts, removeContexts } from '../../core/store/history/order-contexts.ts'
import { removeOverwritten } from '../../core/store/history/overwritten-rows.ts'
import { deleteParcels, loadIdentifiersOf } from '../../core/store/history/parcels.ts'
import { removeWatched } from '../../core/store/history/watched.ts'
import { listHeld, unpackBody } from '../../core/store/ingest/held-pushes.ts'
import { statement } from '../../core/store/statement.ts'
import type { DroppedParcels, WriteTx } from '../../core/store/write-store.ts'
import {
  type ErasedCounts,
  type ErasedIdentifier,
  type ErasureTrace,
  eraseInRecord,
  eraseInText,
  isOfPushes,
  type MentionPlace,
  type MentionSource,
  type NamedEndpoint,
  type PushSource,
  placeAfter,
  REFUSED_HEADERS,
} from './erasure.rules.ts'

export interface ErasedParcels {
  /** One result for each identifier of the request, in the same order. */
  readonly results: readonly ErasedIdentifier[]
  readonly counts: Omit<ErasedCounts, 'mentions'>
  /** The endpoints that were sent something about the parcels. */
  readonly endpoints: readonly NamedEndpoint[]
  /** All identifiers of the erased parcels, with the ids of the parcels. */
  readonly names: readonly { readonly value: string; readonly parcelId: number }[]
  readonly store: Pick<ErasureTrace, 'lineage' | 'restoredAtMs'>
}

type OfParcels = { readonly ids: readonly number[] }

/**
 * Joins all endpoints, even removed ones, because the index that finds the deliveries of a parcel begins with the endpoint. SQLite
 * keeps the order of a cross join. With another join it may read all deliveries.
 */
const deliveriesOf = statement<OfParcels>()((db, p, { anyEndpoint, oneOf }) =>
  db
    .selectFrom('endpoint')
    .crossJoin('delivery')
    .whereRef('delivery.endpoint_id', '=', 'endpoint.id')
    .where('delivery.endpoint_id', 'in', anyEndpoint)
    .where('delivery.parcel_id', 'in', oneOf(p.ids))
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
const entriesOf = statement<OfParcels>()((db, p, { oneOf }) =>
  db.selectFrom('sighting').select('sequence').where('parcel_id', 'in', oneOf(p.ids)),
)
/** Finds the events of these entries that the relay has composed from polls. With a join the planner may read all composed events. */
const composedOf = statement<{ entries: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('feed').select('sequence').where('entry', 'in', oneOf(p.entries)).where('payload_ref', '<=', sql.lit(0)),
)
/** Finds what watchdogs told of these parcels: retention may have removed the deliveries, and a join the breach. */
const toldOf = statement<OfParcels>()((db, p, { oneOf }) =>
  db.selectFrom('feed').select('sequence').where('parcel_id', 'in', oneOf(p.ids)).where('entry', '<', sql.lit(0)),
)
const removeComposed = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('composed_event').where('sequence', 'in', oneOf(p.ids)))
/** There are few rows: a group of failures for each of the last answers of an endpoint. */
const answers = statement()((db) =>
  db.selectFrom('failure').select(['endpoint_id', 'digest', 'delivery_id', 'answer']).where('answer', 'is not', null),
)
const removeFailure = statement<{ endpointId: number; digest: string }>()((db, p) =>
  db.deleteFrom('failure').where('endpoint_id', '=', p.endpointId).where('digest', '=', p.digest),
)
const removePushes = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('inbox').where('parcel_id', 'in', oneOf(p.ids)))
const removeExpected = statement<OfParcels>()((db, p, { oneOf }) => db.deleteFrom('expected_push').where('parcel_id', 'in', oneOf(p.ids)))
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

type ErasedRows = DroppedParcels & Pick<ErasedParcels, 'counts' | 'endpoints' | 'names'>

const NO_PARCELS: ErasedRows = {
  counts: { parcels: 0, identifiers: 0, sightings: 0, answers: 0, pushes: 0, deliveries: 0, attempts: 0, texts: 0 },
  endpoints: [],
  names: [],
  identifiers: [],
  contents: [],
}

/**
 * Deletes parcels that the transaction holds, with all that belongs to them, and adds `erased` events to the feed. `identifiers`: what was asked for,
 * also identifiers without a parcel.
 */
export async function eraseParcels(
  tx: WriteTx,
  ids: readonly number[],
  identifiers: readonly string[],
): Promise<Omit<ErasedParcels, 'results' | 'store'>> {
  const { counts, endpoints, names } = await tx.eraseParcels(ids, identifiers, () => eraseRows(tx, ids))
  return { counts, endpoints, names }
}

async function eraseRows(session: Session, ids: readonly number[]): Promise<ErasedRows> {
  if (ids.length === 0) return NO_PARCELS
  const names = (await loadIdentifiersOf(session, ids)).map((row) => ({ value: row.value, parcelId: row.parcel_id }))
  // Earlier versions left the deliveries of removed endpoints with the parcels that were joined.
  const joined = await joinedInto(session, ids)
  const deliveries = await eraseDeliveries(session, [...ids, ...joined])
  await eraseFailures(session, new Set(names.map(({ value }) => value)), new Set(deliveries.ids))
  const { rows: pushes } = await session.run(removePushes, { ids })
  session.enqueueWrite(removeExpected, { ids })
  const entries = (await session.all(entriesOf, { ids })).map(({ sequence }) => sequence)
  const composed = [...(await session.all(composedOf, { entries })), ...(await session.all(toldOf, { ids: [...ids, ...joined] }))]
  session.enqueueWrite(removeComposed, { ids: composed.map(({ sequence }) => sequence) })
  const contents = await contentsUsedBy(session, ids)
  const { rows: sightings } = await session.run(removeSightings, { ids })
  const texts = (await listUnused(session, contents)).length
  const { rows: answers } = await session.run(removeAnswers, { ids })
  session.enqueueWrite(removeLanguages, { ids })
  const orders = [...(await loadContexts(session, ids)).values(), ...(await eraseJoins(session, [...ids, ...joined]))]
  removeContexts(session, ids)
  removeReportEvidence(session, ids)
  removeOverwritten(session, ids)
  removeWatched(session, ids)
  const { rows: identifiers } = await session.run(removeIdentifiers, { ids })
  await deleteParcels(session, ids)
  return {
    counts: { ...deliveries.counts, parcels: ids.length, identifiers, sightings, answers, pushes, texts },
    endpoints: deliveries.endpoints,
    names,
    identifiers: names.map(({ value }) => value),
    contents,
    words: wordsInBody(Buffer.from(orders.flatMap(textsOfContext).join('\n'))),
  }
}

/** Removes the answers that name an erased parcel. A group counts failures of many deliveries, and its answer is that of the last one. */
async function eraseFailures(session: Session, names: ReadonlySet<string>, deliveryIds: ReadonlySet<number>): Promise<void> {
  const search = searchFor(names)
  for (const { endpoint_id: endpointId, digest, delivery_id: deliveryId, answer } of await session.all(answers, {}))
    if (deliveryIds.has(deliveryId) || mayName(answer, search)) session.enqueueWrite(removeFailure, { endpointId, digest })
}

function mayName(answer: Uint8Array | null, search: NameSearch): boolean {
  const { named, isUnclear } = namesInBody(answer ?? new Uint8Array(), search)
  return named.length > 0 || isUnclear
}

async function eraseDeliveries(
  session: Session,
  ids: readonly number[],
): Promise<{
  readonly ids: readonly number[]
  readonly counts: Pick<ErasedCounts, 'deliveries' | 'attempts'>
  readonly endpoints: readonly NamedEndpoint[]
}> {
  const rows = await session.all(deliveriesOf, { ids })
  const deliveryIds = rows.map(({ id }) => id)
  if (rows.length === 0) return { ids: deliveryIds, counts: { deliveries: 0, attempts: 0 }, endpoints: [] }
  const { rows: attempts } = await session.run(removeAttempts, { ids: deliveryIds })
  session.enqueueWrite(removeComposed, { ids: rows.filter((row) => row.inbox_id === null).map(({ sequence }) => sequence) })
  session.enqueueWrite(removeDeliveries, { ids: deliveryIds })
  const sent = rows.filter((row) => row.attempts > 0 || row.state === DELIVERY_STATE.delivered)
  const endpoints = new Map(sent.map((row) => [row.endpoint_id, { id: String(row.endpoint_id), name: row.name }]))
  const plainlyAccepted = sent.filter(({ state }) => state === DELIVERY_STATE.delivered).length
  return {
    ids: deliveryIds,
    counts: { deliveries: rows.length, attempts: Math.max(attempts, plainlyAccepted) },
    endpoints: [...endpoints.values()],
  }
}

/** Returns the ids of the parcels that were joined into these parcels, directly or earlier into one that was. */
async function joinedInto(session: Session, into: readonly number[]): Promise<readonly number[]> {
  const joined = (await session.all(joinsInto, { ids: into })).flatMap(({ detail }) => decodeJoinOrigin(detail) ?? [])
  return joined.length === 0 ? [] : [...joined, ...(await joinedInto(session, joined))]
}

/** Empties the audit records of joins into these parcels. Returns what they held of orders. */
async function eraseJoins(session: Session, into: readonly number[]): Promise<readonly OrderContext[]> {
  const joins = await session.all(joinsInto, { ids: into })
  if (joins.length > 0) session.enqueueWrite(scrubJoins, { sequences: joins.map(({ sequence }) => sequence) })
  return joins.flatMap(({ detail }) => decodeJoinedOrders(detail))
}

const add = statement<{ identifier: string }>()((db, p) =>
  db
    .insertInto('erasure')
    .values({ identifier: p.identifier })
    .onConflict((conflict) => conflict.column('identifier').doNothing()),
)
const all = statement()((db) => db.selectFrom('erasure').select('identifier').orderBy('identifier'))
const remove = statement<{ identifiers: readonly string[] }>()((db, p, { oneOfTexts }) =>
  db.deleteFrom('erasure').where('identifier', 'in', oneOfTexts(p.identifiers)),
)

/** Notes identifiers whose erasure has begun. Adds them in one order, so that two transactions cannot wait for each other. */
export function addUnfinished(session: Session, identifiers: readonly string[]): void {
  for (const identifier of identifiers.toSorted()) session.enqueueWrite(add, { identifier })
}

export async function listUnfinished(session: Session): Promise<readonly string[]> {
  return (await session.all(all, {})).map(({ identifier }) => identifier)
}

export function removeUnfinished(tx: ErasingTx, identifiers: readonly string[]): void {
  if (identifiers.length === 0) return
  tx.enqueueWrite(remove, { identifiers })
  tx.noteErased({ identifiers, texts: [] })
}

export type ErasingTx = Session & Pick<WriteTx, 'noteErased'>

/** Selects a page of records that may name an identifier but are not parcels, such as pushes in quarantine. */
export interface SearchedPage {
  readonly place: MentionPlace
  readonly limit: number
}

export interface SearchedMentions {
  /** How many pushes without a parcel were removed because they name one of the identifiers. */
  readonly pushes: number
  /** How many other records named one of the identifiers. The identifier was removed from them. */
  readonly mentions: number
  /** How many records stay as they are although they may name an identifier: they cannot be read, or have it as a part of a longer word. */
  readonly unreadable: number
  /** The identifiers that the records named. */
  readonly found: readonly string[]
  /** Where the next page begins; null: this was the last page. */
  readonly next: MentionPlace | null
}

type Page = { readonly after: number; readonly limit: number }

const actions = statement<Page>()((db, p) =>
  db
    .selectFrom('operator_action')
    .select(['id', 'action as record', 'target_kind', 'target', 'detail as text'])
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
)
const saveAction = statement<{ id: number; text: string }>()((db, p) =>
  db.updateTable('operator_action').set({ detail: p.text }).where('id', '=', p.id),
)
const saveTarget = statement<{ id: number; target: string }>()((db, p) =>
  db.updateTable('operator_action').set({ target: p.target }).where('id', '=', p.id),
)
const events = statement<Page>()((db, p) =>
  db
    .selectFrom('operator_event')
    .select(['id', 'event as record', 'detail as text'])
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
)
const saveEvent = statement<{ id: number; text: string }>()((db, p) =>
  db.updateTable('operator_event').set({ detail: p.text }).where('id', '=', p.id),
)
/** The task of a job holds numbers and enumerations, so only the failure can name a parcel. */
const jobs = statement<Page>()((db, p) =>
  db
    .selectFrom('job')
    .select(['id', 'kind as record', 'failure as target', 'task as text'])
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
)
const saveFailure = statement<{ id: number; target: string }>()((db, p) =>
  db.updateTable('job').set({ failure: p.target }).where('id', '=', p.id),
)
const refusals = statement<Page>()((db, p) =>
  db.selectFrom('refusal').select(['id', 'headers as text']).where('id', '>', p.after).orderBy('id').limit(p.limit),
)
const saveHeaders = statement<{ id: number; text: string }>()((db, p) =>
  db.updateTable('refusal').set({ headers: p.text }).where('id', '=', p.id),
)
const removeNamedPushes = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('inbox').where('id', 'in', oneOf(p.ids)),
)

interface TextRow {
  readonly id: number
  readonly text: string
  readonly target: string | null
  /** Under this name `eraseInRecord` knows which members of `text` hold free text. */
  readonly record: string
}

type TextSource = Exclude<MentionSource, PushSource>

const PAGES: Readonly<Record<TextSource, (session: Session, page: Page) => Promise<readonly TextRow[]>>> = {
  actions: async (session, page) =>
    // A target of another kind is an id or a name.
    (await session.all(actions, page)).map((row) => ({ ...row, target: row.target_kind === 'parcel' ? row.target : null })),
  events: async (session, page) => (await session.all(events, page)).map((row) => ({ ...row, target: null })),
  jobs: (session, page) => session.all(jobs, page),
  refusals: async (session, page) => (await session.all(refusals, page)).map((row) => ({ ...row, target: null, record: REFUSED_HEADERS })),
}

export type SearchRequest = SearchedPage & { readonly search: NameSearch }

/** Searches a page of records for identifiers, and removes them. */
export async function searchMentions(tx: ErasingTx, request: SearchRequest): Promise<SearchedMentions> {
  const { source } = request.place
  const texts = new Set<string>()
  const searched = isOfPushes(source) ? await searchPushes(tx, request, source, texts) : await searchTexts(tx, request, source)
  if (searched.found.length > 0) tx.noteErased({ identifiers: searched.found, texts })
  return searched
}

/** @param words gets the words of the removed pushes */
async function searchPushes(
  session: Session,
  { search, place, limit }: SearchRequest,
  state: PushSource,
  words: Set<string>,
): Promise<SearchedMentions> {
  const { pushes, next } = await listHeld(session, { state, reason: null, after: place.after, upTo: Number.MAX_SAFE_INTEGER, limit })
  const found = new Set<string>()
  const gone: number[] = []
  let unreadable = 0
  for (const { inboxId, body, contentEncoding } of pushes) {
    if (body === null) continue
    const unpacked = unpackBody(body, contentEncoding)
    const { named, isUnclear } = unpacked === null ? UNREADABLE : namesInBody(unpacked, search)
    for (const value of named) found.add(value)
    if (named.length > 0) gone.push(inboxId)
    if (unpacked !== null && named.length > 0) for (const word of wordsInBody(unpacked)) words.add(word)
    if (isUnclear) unreadable += 1
  }
  if (gone.length > 0) await session.run(removeNamedPushes, { ids: gone })
  return { pushes: gone.length, mentions: 0, unreadable, found: [...found], next: placeAfter(place, next) }
}

const UNREADABLE = { named: [], isUnclear: true }

async function searchTexts(session: Session, { search, place, limit }: SearchRequest, source: TextSource): Promise<SearchedMentions> {
  const rows = await PAGES[source](session, { after: place.after, limit })
  const found = new Set<string>()
  let [mentions, unreadable] = [0, 0]
  for (const row of rows) {
    const text = eraseInRecord(row.record, row.text, search)
    const target = row.target === null ? null : eraseInText(row.target, search)
    const changed = text === 'unreadable' ? null : text
    if (text === 'unreadable' || changed?.isUnclear === true || target?.isUnclear === true) unreadable += 1
    const names = [...(changed?.names ?? []), ...(target?.names ?? [])]
    if (names.length === 0) continue
    mentions += 1
    for (const value of names) found.add(value)
    save(session, source, { ...row, text: changed?.text ?? row.text }, target?.text ?? null)
  }
  const last = rows.length < limit ? null : (rows.at(-1)?.id ?? null)
  return { pushes: 0, mentions, unreadable, found: [...found], next: placeAfter(place, last) }
}

/** `target` null: it stays as it is. */
function save(session: Session, source: TextSource, { id, text }: TextRow, target: string | null): void {
  if (source === 'events') session.enqueueWrite(saveEvent, { id, text })
  if (source === 'actions') session.enqueueWrite(saveAction, { id, text })
  if (source === 'refusals') session.enqueueWrite(saveHeaders, { id, text })
  if (target === null) return
  if (source === 'actions') session.enqueueWrite(saveTarget, { id, target })
  if (source === 'jobs') session.enqueueWrite(saveFailure, { id, target })
}

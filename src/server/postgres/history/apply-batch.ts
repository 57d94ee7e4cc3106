import { sql } from 'kysely'
import type { FeedEvent } from '../../../core/domain/delivery/feed-entry.ts'
import type { ChangeSet, SightingWrite, WriteSet } from '../../../core/domain/history/change-set.ts'
import type { KeptSighting } from '../../../core/domain/history/sightings.ts'
import { type Loaded, type Needs, pushKey } from '../../../core/domain/history/snapshot.ts'
import { feedRow } from '../../../core/store/delivery/feed.ts'
import type { Session } from '../../../core/store/engine.ts'
import { dropAnswers, saveAnswer } from '../../../core/store/history/answers.ts'
import { EVENT_VALUES_MAX, eventValueKey } from '../../../core/store/history/event-values.ts'
import { joinParcels } from '../../../core/store/history/join.ts'
import { dropOldest, overwrittenRow } from '../../../core/store/history/overwritten-rows.ts'
import { loadParcelFacts } from '../../../core/store/history/parcel-view.ts'
import { loadIdentifiersOf } from '../../../core/store/history/parcels.ts'
import { decodeSighting, sightingRow } from '../../../core/store/history/sighting-rows.ts'
import { deleteInbox, digestBytes, inboxRow, PUSH_COLUMNS, updateInboxState } from '../../../core/store/ingest/inbox-rows.ts'
import { expectedRow, type Leases } from '../../../core/store/polling/due-polls.ts'
import { COLUMNS, type Tables } from '../../../core/store/tables.ts'
import { advanceCounter, announceOrder } from '../counter.ts'
import { enqueueComposed, enqueueDeliveries } from '../delivery/queue-deliveries.ts'
import { type Columns, enqueueRows, givenRows, rawStatement, replaced } from '../postgres-dialect.ts'
import { digestOf, type TransactionContents } from './postgres-contents.ts'
import { enqueueIdentifiers, enqueueParcels, findParcels } from './postgres-parcels.ts'
import { PROVISIONAL, real, realAudience, realJoin, realTellings } from './provisional.ts'

export interface ApplySource {
  /** Makes the transaction begin again, with these identifiers locked from its start, unless they are locked already. */
  readonly lockFirst: (identifiers: readonly string[]) => void
  readonly session: Session
  readonly contents: TransactionContents
  readonly leases: Pick<Leases, 'release'>
  /** The version of the endpoints for which the batch was computed. If endpoints have changed since, the transaction begins again. */
  readonly endpointsVersion: number
  /** Statuses that are stored already. */
  readonly statuses: ReadonlySet<string>
  /** The `eventValueKey` of each value that is stored already. */
  readonly eventValues: ReadonlySet<string>
}

/**
 * Writes the changes of a batch. All statements are sent together: first the rows without sequences, then the statement that locks the
 * counter of sequences, then the rows with sequences. So the server never waits for this process while the counter is locked. Only a batch
 * that joins parcels waits for results, because a join reads rows, and puts the final sequences into the text of an audit record.
 */
export async function applyBatch(source: ApplySource, { writes, next }: Pick<ChangeSet, 'writes' | 'next'>): Promise<void> {
  const { session } = source
  const given = next.sequence - 1 - PROVISIONAL
  const joins = writes.some(({ join }) => join !== null)
  source.contents.intern(writes.flatMap(({ sightings }) => sightings.map(({ kept }) => kept.content)))
  if (joins) await lockJoined(source, writes)
  else for (const set of writes) applyUnnumbered(source, set)
  const counted = given === 0 ? null : advanceCounter(session, given, source.endpointsVersion)
  // If this statement fails, the statements after it fail too, and they report the failure.
  counted?.catch(() => undefined)
  for (const set of writes) {
    if (set.join !== null) await joinParcels(session, source.contents, realJoin(set.join, (await counted) ?? 0))
    if (joins) applyUnnumbered(source, set)
    applyNumbered(source, set)
    for (const parcelId of set.released) source.leases.release(parcelId)
  }
  if (joins) announceOrder(session)
}

/** A join changes identifiers that its push need not name. All who lock identifiers do so in one order, or they would wait for each other. */
async function lockJoined({ session, lockFirst }: ApplySource, writes: readonly WriteSet[]): Promise<void> {
  const from = writes.flatMap(({ join }) => join?.others.map(({ state }) => state.parcelId) ?? [])
  lockFirst((await loadIdentifiersOf(session, from)).map(({ value }) => value))
}

function applyUnnumbered(source: ApplySource, set: WriteSet): void {
  const { session } = source
  enqueueIdentifiers(session, set.identifiers)
  applyInbox(session, set)
  enqueueParcels(session, [...set.parcels.values()])
  const statuses = [...set.statuses, ...[...set.parcels.values()].flatMap(({ latest }) => latest?.status ?? [])]
  const unknown = new Set(statuses.filter((status) => !source.statuses.has(status)))
  if (unknown.size > 0) session.enqueueWrite(insertStatuses, { statuses: [...unknown].sort() })
  enqueueEventValues(source, set)
  for (const { dropped, ...answer } of set.answers) {
    saveAnswer(session, answer)
    dropAnswers(session, answer.parcelId, dropped)
  }
}

/** The most statuses that the table holds. A carrier may invent a new status for every parcel. */
const STATUSES_MAX = 1000

const insertStatuses = rawStatement<{ statuses: readonly string[] }>()(
  (p) => sql`
    insert into parcel_status (status) select status from unnest(${p.statuses}::text[]) as u (status)
    where (select count(*) from parcel_status) < ${sql.lit(STATUSES_MAX)} on conflict do nothing`,
)

function enqueueEventValues({ session, eventValues }: ApplySource, set: WriteSet): void {
  const unknown = new Map(set.eventValues.map((value) => [eventValueKey(value), value]))
  for (const key of unknown.keys()) if (eventValues.has(key)) unknown.delete(key)
  // All transactions write the values in one order. Otherwise two transactions could each wait for the other.
  const sorted = [...unknown].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, { member, value }]) => ({ member, value }))
  enqueueRows(session, insertEventValues, sorted)
}

const insertEventValues = rawStatement<Columns<Tables['event_value']>>()(
  (p) => sql`
    insert into event_value (member, value) select member, value from unnest(${p.member}::text[], ${p.value}::text[]) as u (member, value)
    where (select count(*) from event_value as kept where kept.member = u.member) < ${sql.lit(EVENT_VALUES_MAX)} on conflict do nothing`,
)

function applyInbox(session: Session, { inbox, dropped, duplicates }: WriteSet): void {
  const fresh = inbox.filter(({ push }) => push.inboxId === undefined)
  enqueueRows(session, insertPushes, fresh.map(inboxRow))
  for (const push of inbox) if (push.push.inboxId !== undefined) updateInboxState(session, push)
  for (const inboxId of dropped) deleteInbox(session, inboxId)
  if (duplicates.length > 0) session.enqueueWrite(countDuplicates, { ids: duplicates })
}

const insertPushes = rawStatement<Columns<ReturnType<typeof inboxRow>>>()((p) => sql`insert into inbox ${givenRows(PUSH_COLUMNS, p)}`)
const countDuplicates = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql`
    update inbox set duplicates = duplicates + again.times
    from (select id, count(*) as times from unnest(${p.ids}::bigint[]) as u (id) group by id) as again where inbox.id = again.id`,
)

function applyNumbered({ session, contents }: ApplySource, set: WriteSet): void {
  enqueueSightings(session, contents, set.sightings)
  enqueueOverwritten(session, set.overwritten)
  const { feed, composed, deliveries, expected } = set
  enqueueFeed(session, feed)
  enqueueComposed(session, composed)
  enqueueDeliveries(session, deliveries)
  enqueueRows(session, insertExpected, expected.map(expectedRow))
}

/** If a sighting occurs several times, the last one counts. */
function enqueueSightings(session: Session, contents: TransactionContents, sightings: readonly SightingWrite[]): void {
  const rows = new Map<string, StoredSighting>()
  for (const { parcelId, kept } of sightings) {
    const row = sightingRow(parcelId, contents.recall(kept.content) ?? null, kept)
    const key = [parcelId, row.at_ms, row.time_form, kept.listing, kept.ordinal, kept.content].join('/')
    rows.set(key, { ...row, digest: row.content_id === null ? digestOf(kept.content) : null })
  }
  enqueueRows(session, saveSightings, [...rows.values()])
}

/** `digest`: the digest of the content, if its id is not known yet. */
type StoredSighting = ReturnType<typeof sightingRow<number | null>> & { readonly digest: Uint8Array | null }

const saveSightings = rawStatement<Columns<StoredSighting>>()(
  (p) => sql`
    insert into sighting ${givenRows({ ...COLUMNS.sighting, digest: COLUMNS.content.digest }, p, {
      content_id: sql`coalesce(u.content_id, (select id from content where content.digest = u.digest))`,
      digest: null,
      sequence: real(sql.ref('u.sequence')),
      audience: realAudience(sql.ref('u.audience')),
      tellings: realTellings(sql.ref('u.tellings')),
    })}
    on conflict (parcel_id, at_ms, time_form, content_id, listing, ordinal) do update set ${replaced(COLUMNS.sighting)}`,
)
function enqueueOverwritten(session: Session, overwritten: WriteSet['overwritten']): void {
  enqueueRows(session, insertOverwritten, overwritten.map(overwrittenRow))
  for (const parcelId of new Set(overwritten.map((one) => one.parcelId))) dropOldest(session, parcelId)
}

const insertOverwritten = rawStatement<Columns<ReturnType<typeof overwrittenRow>>>()(
  (p) => sql`
    insert into overwritten (parcel_id, nth, sequence, learnt_at_ms, value)
    select u.parcel_id, coalesce((select max(last.nth) from overwritten as last where last.parcel_id = u.parcel_id), 0)
      + row_number() over (partition by u.parcel_id order by u.place), ${real(sql.ref('u.sequence'))}, u.learnt_at_ms, u.value
    from unnest(${p.parcelId}::bigint[], ${p.sequence}::bigint[], ${p.learntAtMs}::bigint[], ${p.value}::text[])
      with ordinality as u (parcel_id, sequence, learnt_at_ms, value, place)`,
)
/** The caller must have locked the counter. */
export function enqueueFeed(session: Session, feed: readonly FeedEvent[]): void {
  enqueueRows(session, insertFeed, feed.map(feedRow))
}

const insertFeed = rawStatement<Columns<ReturnType<typeof feedRow>>>()(
  (p) => sql`
    insert into feed ${givenRows(COLUMNS.feed, p, {
      sequence: real(sql.ref('u.sequence')),
      entry: real(sql.ref('u.entry')),
      earlier_audience: realAudience(sql.ref('u.earlier_audience')),
      earlier_tellings: realTellings(sql.ref('u.earlier_tellings')),
    })}`,
)
const insertExpected = rawStatement<Columns<ReturnType<typeof expectedRow>>>()(
  (p) => sql`
    insert into expected_push (entry, parcel_id, event_at_ms, found_at_ms, due_at_ms)
    select ${real(sql.ref('u.entry'))}, u.parcel_id, u.event_at_ms, u.found_at_ms, u.due_at_ms
    from unnest(${p.entry}::bigint[], ${p.parcelId}::bigint[], ${p.eventAtMs}::bigint[], ${p.foundAtMs}::bigint[], ${p.dueAtMs}::bigint[])
      as u (entry, parcel_id, event_at_ms, found_at_ms, due_at_ms)`,
)

export interface BatchSource {
  readonly session: Session
  readonly contents: TransactionContents
}

/** See `WriteTx.loadNeeds`. Locks the parcels before it reads them, so that they stay as read until the transaction ends. */
export async function loadNeeds(source: BatchSource, needs: Needs): Promise<Loaded> {
  const { session } = source
  const [parcels, pushes, seconds, whole, facts] = await Promise.all([
    needs.parcels.length === 0 ? [] : findParcels(session, needs.parcels),
    findTwins(session, needs.pushes),
    readSeconds(source, needs.seconds),
    readWhole(source, needs.whole),
    loadParcelFacts(session, needs),
  ])
  return { needs, parcels, pushes, seconds, whole, ...facts }
}

const twins = rawStatement<{ parcelIds: readonly number[]; digests: readonly Uint8Array[] }>()(
  (p) => sql<{ id: number; parcel_id: number; nth: number }>`
    select inbox.id, inbox.parcel_id, u.nth from unnest(${p.parcelIds}::bigint[], ${p.digests}::bytea[]) with ordinality as u (parcel_id, digest, nth)
    join inbox on inbox.parcel_id = u.parcel_id and inbox.digest = u.digest`,
)

async function findTwins(session: Session, pushes: Needs['pushes']): Promise<ReadonlyMap<string, number>> {
  if (pushes.length === 0) return new Map()
  const digests = pushes.map(({ digest }) => digestBytes(digest))
  const found = await session.all(twins, { parcelIds: pushes.map(({ parcelId }) => parcelId), digests })
  return new Map(found.map(({ id, parcel_id: parcelId, nth }) => [pushKey(parcelId, pushes[nth - 1]?.digest ?? ''), id]))
}

type SightingRow = Tables['sighting'] & { readonly json: string }

/** Reads a content by a subquery for each row. For a join, the planner might read all contents. */
const json = sql`(select json from content where content.id = sighting.content_id) as json`

const ofSeconds = rawStatement<{ parcelIds: readonly number[]; fromMs: readonly number[] }>()(
  (p) => sql<SightingRow>`
    select sighting.*, ${json} from unnest(${p.parcelIds}::bigint[], ${p.fromMs}::bigint[]) as u (parcel_id, from_ms)
    join sighting on sighting.parcel_id = u.parcel_id and sighting.at_ms >= u.from_ms and sighting.at_ms < u.from_ms + 1000`,
)
const ofParcels = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql<SightingRow>`select sighting.*, ${json} from sighting where sighting.parcel_id = any(${p.ids}::bigint[])`,
)

type ByParcel = ReadonlyMap<number, readonly KeptSighting[]>

async function readSeconds(source: BatchSource, seconds: Needs['seconds']): Promise<ByParcel> {
  if (seconds.length === 0) return new Map()
  const columns = { parcelIds: seconds.map(({ parcelId }) => parcelId), fromMs: seconds.map(({ second }) => second * 1000) }
  return byParcel(source, await source.session.all(ofSeconds, columns))
}

/** Reads all sightings of parcels. A parcel without sightings is absent. */
export async function readWhole(source: BatchSource, parcelIds: readonly number[]): Promise<ByParcel> {
  if (parcelIds.length === 0) return new Map()
  return byParcel(source, await source.session.all(ofParcels, { ids: parcelIds }))
}

function byParcel({ contents }: BatchSource, rows: readonly SightingRow[]): ByParcel {
  const found = new Map<number, KeptSighting[]>()
  for (const row of rows) {
    const sighting = decodeSighting(row, contents.note(row.content_id, row.json))
    const others = found.get(row.parcel_id)
    if (others === undefined) found.set(row.parcel_id, [sighting])
    else others.push(sighting)
  }
  return found
}

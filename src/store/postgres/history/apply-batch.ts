import { sql } from 'kysely'
import { noAudience } from '../../../domain/history/audience.ts'
import type { ChangeSet, SightingWrite, WriteSet } from '../../../domain/history/change-set.ts'
import { encodeAudience, encodeExtra, encodeFeedKind, encodePayloadRef } from '../../codec.ts'
import type { Session } from '../../engine.ts'
import { dropAnswers, saveAnswer } from '../../history/answers.ts'
import { joinParcels } from '../../history/join.ts'
import { deleteInbox, INBOX_STATES, updateInboxState } from '../../ingest/inbox.ts'
import { encodeInstant } from '../../instant-codec.ts'
import type { Leases } from '../../polling/leases.ts'
import { advanceCounter, announceOrder } from '../counter.ts'
import { enqueueComposed, enqueueDeliveries } from '../delivery/queue-deliveries.ts'
import { rawStatement } from '../raw-statement.ts'
import { digestOf, type TransactionContents } from './postgres-contents.ts'
import { enqueueIdentifiers, enqueueParcels } from './postgres-parcels.ts'
import { PROVISIONAL, real, realAudience, realJoin } from './provisional.ts'

/** What a batch is applied to, within its transaction. */
export interface ApplySource {
  readonly session: Session
  readonly contents: TransactionContents
  readonly leases: Pick<Leases, 'release'>
  /** As the batch was decided with: if it has moved since, the transaction fails and is begun again. */
  readonly endpointsVersion: number
  /** Statuses that need not be written down again. */
  readonly statuses: ReadonlySet<string>
}

/**
 * Writes what a batch changes. Everything is sent together: what needs no number first, then the counter is locked, then what is numbered; from there to
 * the commit nothing waits for this side. A batch that joins parcels is the exception: the audit trail holds numbers in texts, so the counter's answer is
 * waited for, and what a join reads.
 */
export async function applyBatch(source: ApplySource, { writes, next }: Pick<ChangeSet, 'writes' | 'next'>): Promise<void> {
  const { session } = source
  const given = next.sequence - 1 - PROVISIONAL
  const joins = writes.some(({ join }) => join !== null)
  source.contents.intern(writes.flatMap(({ sightings }) => sightings.map(({ kept }) => kept.content)))
  if (!joins) for (const set of writes) applyUnnumbered(source, set)
  const counted = given === 0 ? null : advanceCounter(session, given, source.endpointsVersion)
  // What comes after it fails for it.
  counted?.catch(() => undefined)
  for (const set of writes) {
    if (set.join !== null) await joinParcels(session, source.contents, realJoin(set.join, (await counted) ?? 0))
    if (joins) applyUnnumbered(source, set)
    applyNumbered(source, set)
    for (const parcelId of set.released) source.leases.release(parcelId)
  }
  if (joins) announceOrder(session)
}

function applyUnnumbered(source: ApplySource, set: WriteSet): void {
  const { session } = source
  enqueueIdentifiers(session, set.identifiers)
  applyInbox(session, set)
  enqueueParcels(session, [...set.parcels.values()])
  const statuses = [...set.statuses, ...[...set.parcels.values()].flatMap(({ latest }) => latest?.status ?? [])]
  const unknown = new Set(statuses.filter((status) => !source.statuses.has(status)))
  if (unknown.size > 0) session.enqueueWrite(insertStatuses, { statuses: [...unknown].sort() })
  for (const { dropped, ...answer } of set.answers) {
    saveAnswer(session, answer)
    dropAnswers(session, answer.parcelId, dropped)
  }
}

/** Of a carrier that makes up a new status for every parcel no more are kept. */
const STATUSES_MAX = 1000

const insertStatuses = rawStatement<{ statuses: readonly string[] }>()(
  (p) => sql`
    insert into parcel_status (status) select status from unnest(${p.statuses}::text[]) as u (status)
    where (select count(*) from parcel_status) < ${sql.lit(STATUSES_MAX)} on conflict do nothing`,
)

function applyInbox(session: Session, { inbox, dropped, duplicates }: WriteSet): void {
  const fresh = inbox.filter(({ push }) => push.inboxId === undefined)
  if (fresh.length > 0) {
    session.enqueueWrite(insertPushes, {
      ids: fresh.map(({ inboxId }) => inboxId),
      digests: fresh.map(({ digest }) => Buffer.from(digest, 'binary')),
      receivedAtMs: fresh.map(({ push }) => push.receivedAtMs),
      keyIndexes: fresh.map(({ push }) => push.keyIndex),
      contentEncodings: fresh.map(({ push }) => push.contentEncoding),
      states: fresh.map(({ state }) => INBOX_STATES[state]),
      reasons: fresh.map(({ reason }) => reason),
      parcelIds: fresh.map(({ parcelId }) => parcelId),
      bodies: fresh.map(({ push }) => push.body),
    })
  }
  for (const push of inbox) if (push.push.inboxId !== undefined) updateInboxState(session, push)
  for (const inboxId of dropped) deleteInbox(session, inboxId)
  if (duplicates.length > 0) session.enqueueWrite(countDuplicates, { ids: duplicates })
}

const insertPushes = rawStatement<{
  ids: readonly number[]
  digests: readonly Uint8Array[]
  receivedAtMs: readonly number[]
  keyIndexes: readonly number[]
  contentEncodings: readonly (string | null)[]
  states: readonly number[]
  reasons: readonly (string | null)[]
  parcelIds: readonly number[]
  bodies: readonly Uint8Array[]
}>()(
  (p) => sql`
    insert into inbox (id, digest, received_at_ms, key_index, content_encoding, state, reason, parcel_id, body)
    select * from unnest(${p.ids}::bigint[], ${p.digests}::bytea[], ${p.receivedAtMs}::bigint[], ${p.keyIndexes}::integer[],
      ${p.contentEncodings}::text[], ${p.states}::smallint[], ${p.reasons}::text[], ${p.parcelIds}::bigint[], ${p.bodies}::bytea[])`,
)
const countDuplicates = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql`
    update inbox set duplicates = duplicates + again.times
    from (select id, count(*) as times from unnest(${p.ids}::bigint[]) as u (id) group by id) as again where inbox.id = again.id`,
)

function applyNumbered({ session, contents }: ApplySource, set: WriteSet): void {
  enqueueSightings(session, contents, set.sightings)
  const { feed, composed, deliveries, expected } = set
  if (feed.length > 0) {
    session.enqueueWrite(insertFeed, {
      sequences: feed.map(({ sequence }) => sequence),
      kinds: feed.map(({ kind }) => encodeFeedKind(kind)),
      parcelIds: feed.map(({ parcelId }) => parcelId),
      entries: feed.map(({ entry }) => entry),
      payloadRefs: feed.map(({ payloadRef }) => encodePayloadRef(payloadRef)),
      earlierAudiences: feed.map(({ payloadRef }) => encodeAudience(payloadRef?.earlierAudience ?? noAudience)),
    })
  }
  enqueueComposed(session, composed)
  enqueueDeliveries(session, deliveries)
  if (expected.length > 0) {
    session.enqueueWrite(insertExpected, {
      entries: expected.map(({ entry }) => entry),
      parcelIds: expected.map(({ parcelId }) => parcelId),
      eventAtMs: expected.map(({ eventAtMs }) => eventAtMs),
      foundAtMs: expected.map(({ foundAtMs }) => foundAtMs),
      dueAtMs: expected.map(({ dueAtMs }) => dueAtMs),
    })
  }
}

/** The last that is written of one sighting counts. */
function enqueueSightings(session: Session, contents: TransactionContents, sightings: readonly SightingWrite[]): void {
  if (sightings.length === 0) return
  const rows = new Map<string, SightingWrite & ReturnType<typeof encodeInstant>>()
  for (const write of sightings) {
    const { content, listing, ordinal, sighting } = write.kept
    const instant = encodeInstant(sighting.instant)
    rows.set([write.parcelId, instant.at_ms, instant.time_form, listing, ordinal, content].join('/'), { ...write, ...instant })
  }
  const all = [...rows.values()]
  const ids = all.map(({ kept }) => contents.recall(kept.content) ?? null)
  session.enqueueWrite(saveSightings, {
    parcelIds: all.map(({ parcelId }) => parcelId),
    atMs: all.map((row) => row.at_ms),
    timeForms: all.map((row) => row.time_form),
    contentIds: ids,
    digests: all.map(({ kept }, at) => (ids[at] === null ? digestOf(kept.content) : null)),
    listings: all.map(({ kept }) => kept.listing),
    ordinals: all.map(({ kept }) => kept.ordinal),
    askedAtMs: all.map(({ kept }) => kept.askedAtMs),
    sequences: all.map(({ kept }) => kept.sequence),
    learntAtMs: all.map(({ kept }) => kept.learntAtMs),
    audiences: all.map(({ kept }) => encodeAudience(kept.audience)),
    extras: all.map(({ kept }) => encodeExtra(kept.sighting.extra)),
  })
}

const saveSightings = rawStatement<{
  parcelIds: readonly number[]
  atMs: readonly number[]
  timeForms: readonly number[]
  contentIds: readonly (number | null)[]
  digests: readonly (Uint8Array | null)[]
  listings: readonly number[]
  ordinals: readonly number[]
  askedAtMs: readonly number[]
  sequences: readonly number[]
  learntAtMs: readonly (number | null)[]
  audiences: readonly number[]
  extras: readonly (string | null)[]
}>()(
  (p) => sql`
    insert into sighting (parcel_id, at_ms, time_form, content_id, listing, ordinal, asked_at_ms, sequence, learnt_at_ms, audience, extra)
    select u.parcel_id, u.at_ms, u.time_form, coalesce(u.content_id, (select id from content where content.digest = u.digest)), u.listing, u.ordinal,
      u.asked_at_ms, ${real(sql.ref('u.sequence'))}, u.learnt_at_ms, ${realAudience(sql.ref('u.audience'))}, u.extra
    from unnest(${p.parcelIds}::bigint[], ${p.atMs}::bigint[], ${p.timeForms}::integer[], ${p.contentIds}::bigint[], ${p.digests}::bytea[],
      ${p.listings}::bigint[], ${p.ordinals}::integer[], ${p.askedAtMs}::bigint[], ${p.sequences}::bigint[], ${p.learntAtMs}::bigint[],
      ${p.audiences}::bigint[], ${p.extras}::text[])
      as u (parcel_id, at_ms, time_form, content_id, digest, listing, ordinal, asked_at_ms, sequence, learnt_at_ms, audience, extra)
    on conflict (parcel_id, at_ms, time_form, content_id, listing, ordinal) do update set
      asked_at_ms = excluded.asked_at_ms, sequence = excluded.sequence, learnt_at_ms = excluded.learnt_at_ms, audience = excluded.audience,
      extra = excluded.extra`,
)
const insertFeed = rawStatement<{
  sequences: readonly number[]
  kinds: readonly number[]
  parcelIds: readonly number[]
  entries: readonly number[]
  payloadRefs: readonly (number | null)[]
  earlierAudiences: readonly number[]
}>()(
  (p) => sql`
    insert into feed (sequence, kind, parcel_id, entry, payload_ref, earlier_audience)
    select ${real(sql.ref('u.sequence'))}, u.kind, u.parcel_id, ${real(sql.ref('u.entry'))}, u.payload_ref, ${realAudience(sql.ref('u.earlier_audience'))}
    from unnest(${p.sequences}::bigint[], ${p.kinds}::smallint[], ${p.parcelIds}::bigint[], ${p.entries}::bigint[], ${p.payloadRefs}::bigint[],
      ${p.earlierAudiences}::bigint[]) as u (sequence, kind, parcel_id, entry, payload_ref, earlier_audience)`,
)
const insertExpected = rawStatement<{
  entries: readonly number[]
  parcelIds: readonly number[]
  eventAtMs: readonly number[]
  foundAtMs: readonly number[]
  dueAtMs: readonly number[]
}>()(
  (p) => sql`
    insert into expected_push (entry, parcel_id, event_at_ms, found_at_ms, due_at_ms)
    select ${real(sql.ref('u.entry'))}, u.parcel_id, u.event_at_ms, u.found_at_ms, u.due_at_ms
    from unnest(${p.entries}::bigint[], ${p.parcelIds}::bigint[], ${p.eventAtMs}::bigint[], ${p.foundAtMs}::bigint[], ${p.dueAtMs}::bigint[])
      as u (entry, parcel_id, event_at_ms, found_at_ms, due_at_ms)`,
)

import type { FeedEvent } from '../../domain/delivery/feed-entry.ts'
import { noAudience } from '../../domain/history/audience.ts'
import type { ExpectedPush } from '../../domain/polling/poll.ts'
import { encodeAudience, encodeFeedKind, encodePayloadRef } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadNumber } from '../settings.ts'
import { statement } from '../statement.ts'

const PRUNED_TO = 'feed-pruned-to'

const insertEvent = statement<{
  sequence: number
  kind: number
  parcelId: number
  entry: number
  carries: number | null
  earlierAudience: number
}>()((db, p) =>
  db.insertInto('feed').values({
    sequence: p.sequence,
    kind: p.kind,
    parcel_id: p.parcelId,
    entry: p.entry,
    carries: p.carries,
    told_before: p.earlierAudience,
  }),
)

export function appendFeed(session: Session, { sequence, kind, parcelId, entry, payloadRef }: FeedEvent): void {
  session.enqueueWrite(insertEvent, {
    sequence,
    kind: encodeFeedKind(kind),
    parcelId,
    entry,
    carries: encodePayloadRef(payloadRef),
    earlierAudience: encodeAudience(payloadRef?.earlierAudience ?? noAudience),
  })
}

/** Up to which sequence events are gone. */
export async function prunedTo(session: Session): Promise<number> {
  return await loadNumber(session, PRUNED_TO)
}

const insertAudit = statement<{ sequence: number; atMs: number; kind: string; parcelId: number; detail: string }>()((db, p) =>
  db.insertInto('audit').values({ sequence: p.sequence, at_ms: p.atMs, kind: p.kind, parcel_id: p.parcelId, detail: p.detail }),
)

export interface AuditRecord {
  readonly sequence: number
  readonly atMs: number
  readonly kind: 'join'
  readonly parcelId: number
  readonly detail: object
}

/** What was done to parcels as such, with what is needed to undo it. */
export async function appendAudit(session: Session, record: AuditRecord): Promise<void> {
  await session.run(insertAudit, { ...record, detail: JSON.stringify(record.detail) })
}

const insertExpected = statement<{ entry: number; parcelId: number; eventAtMs: number; foundAtMs: number; dueAtMs: number }>()((db, p) =>
  db
    .insertInto('expected_push')
    .values({ entry: p.entry, parcel_id: p.parcelId, event_at_ms: p.eventAtMs, found_at_ms: p.foundAtMs, due_at_ms: p.dueAtMs }),
)
const dueExpected = statement<{ nowMs: number; limit: number }>()((db, p) =>
  db.selectFrom('expected_push').selectAll().where('due_at_ms', '<=', p.nowMs).orderBy('due_at_ms').limit(p.limit),
)
const deleteExpected = statement<{ entry: number }>()((db, p) => db.deleteFrom('expected_push').where('entry', '=', p.entry))
const moveExpected = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf }) =>
  db.updateTable('expected_push').set({ parcel_id: p.into }).where('parcel_id', 'in', oneOf(p.ids)),
)

export async function expectPush(session: Session, expected: ExpectedPush & { readonly dueAtMs: number }): Promise<void> {
  const { entry, parcelId, eventAtMs, foundAtMs, dueAtMs } = expected
  await session.run(insertExpected, { entry, parcelId, eventAtMs, foundAtMs, dueAtMs })
}

export async function duePushes(session: Session, nowMs: number, limit: number): Promise<readonly ExpectedPush[]> {
  const rows = await session.all(dueExpected, { nowMs, limit })
  return rows.map((row) => ({ entry: row.entry, parcelId: row.parcel_id, eventAtMs: row.event_at_ms, foundAtMs: row.found_at_ms }))
}

export async function settlePush(session: Session, entry: number): Promise<void> {
  await session.run(deleteExpected, { entry })
}

export async function moveExpectedPushes(session: Session, from: readonly number[], into: number): Promise<void> {
  await session.run(moveExpected, { ids: from, into })
}

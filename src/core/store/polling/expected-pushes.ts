import type { ExpectedPush } from '../../domain/polling/poll.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

const insertExpected = statement<ReturnType<typeof expectedRow>>()((db, p) =>
  db
    .insertInto('expected_push')
    .values({ entry: p.entry, parcel_id: p.parcelId, event_at_ms: p.eventAtMs, found_at_ms: p.foundAtMs, due_at_ms: p.dueAtMs }),
)
const dueExpected = statement<{ nowMs: number; limit: number }>()((db, p) =>
  db.selectFrom('expected_push').selectAll().where('due_at_ms', '<=', p.nowMs).orderBy('due_at_ms').limit(p.limit),
)
const deleteExpected = statement<{ entries: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('expected_push').where('entry', 'in', oneOf(p.entries)),
)
const moveExpected = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf }) =>
  db.updateTable('expected_push').set({ parcel_id: p.into }).where('parcel_id', 'in', oneOf(p.ids)),
)

type Expected = ExpectedPush & { readonly dueAtMs: number }

export async function expectPush(session: Session, expected: Expected): Promise<void> {
  await session.run(insertExpected, expectedRow(expected))
}

export function expectedRow({ entry, parcelId, eventAtMs, foundAtMs, dueAtMs }: Expected) {
  return { entry, parcelId, eventAtMs, foundAtMs, dueAtMs }
}

export async function duePushes(session: Session, nowMs: number, limit: number): Promise<readonly ExpectedPush[]> {
  const rows = await session.all(dueExpected, { nowMs, limit })
  return rows.map((row) => ({ entry: row.entry, parcelId: row.parcel_id, eventAtMs: row.event_at_ms, foundAtMs: row.found_at_ms }))
}

export function dropExpectedPushes(session: Session, entries: readonly number[]): void {
  session.enqueueWrite(deleteExpected, { entries })
}

export async function moveExpectedPushes(session: Session, from: readonly number[], into: number): Promise<void> {
  await session.run(moveExpected, { ids: from, into })
}

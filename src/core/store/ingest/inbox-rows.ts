import type { InboxWrite } from '../../domain/history/change-set.ts'
import type { InboxState, KeptPush } from '../../domain/ingest/inbox.ts'
import type { Session } from '../engine.ts'
import { rowOf, statement } from '../statement.ts'
import { COLUMNS } from '../tables.ts'

/** The number under which each state is stored. */
export const INBOX_STATES = { recorded: 0, quarantined: 1, expired: 2, dismissed: 3 } as const satisfies Readonly<
  Record<InboxState, number>
>

const moveAll = statement<{ ids: readonly number[]; into: number }>()((db, p, { oneOf }) =>
  db.updateTable('inbox').set({ parcel_id: p.into }).where('parcel_id', 'in', oneOf(p.ids)),
)

const { duplicates: _duplicates, ...PUSH } = COLUMNS.inbox
/** What is inserted of a push. */
export const PUSH_COLUMNS = PUSH
const insertNew = statement<ReturnType<typeof inboxRow>>()((db, p) => db.insertInto('inbox').values(rowOf(PUSH_COLUMNS, p)))

const addDuplicate = statement<{ id: number }>()((db, p) =>
  db
    .updateTable('inbox')
    .set((row) => ({ duplicates: row('duplicates', '+', 1) }))
    .where('id', '=', p.id),
)

const quarantined = statement()((db) =>
  db
    .selectFrom('inbox')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('state', '=', INBOX_STATES.quarantined),
)

export async function moveInbox(session: Session, from: readonly number[], into: number): Promise<void> {
  await session.run(moveAll, { ids: from, into })
}

/** Stores a push. The unique index starts with the parcel id, so that pushes of new parcels go to its end and not to random pages. */
export function insertPush(session: Session, write: InboxWrite): void {
  session.enqueueWrite(insertNew, inboxRow(write))
}

export function inboxRow({ inboxId, push, digest, state, reason, parcelId }: InboxWrite) {
  return {
    id: inboxId,
    digest: digestBytes(digest),
    received_at_ms: push.receivedAtMs,
    key_index: push.keyIndex,
    content_encoding: push.contentEncoding,
    state: INBOX_STATES[state],
    reason,
    parcel_id: parcelId,
    body: push.body,
  }
}

export function countDuplicate(session: Session, inboxId: number): void {
  session.enqueueWrite(addDuplicate, { id: inboxId })
}

export function digestBytes(digest: string): Uint8Array {
  return Buffer.from(digest, 'binary')
}

const newest = statement()((db) => db.selectFrom('inbox').select((row) => row.fn.max<number | null>('id').as('id')))

const lastGiven = statement()((db) => db.selectFrom('sqlite_sequence').select('seq').where('name', '=', 'inbox'))

/** Returns the highest inbox id ever assigned; 0: no id was assigned. For SQLite only. */
export async function lastInboxId(session: Session): Promise<number> {
  const [row] = await session.all(newest, {})
  const [given] = await session.all(lastGiven, {})
  return Math.max(row?.id ?? 0, given?.seq ?? 0)
}

const deleteRow = statement<{ id: number }>()((db, p) => db.deleteFrom('inbox').where('id', '=', p.id))

export function deleteInbox(session: Session, id: number): void {
  session.enqueueWrite(deleteRow, { id })
}

const updateState = statement<{ id: number; state: number; reason: string | null; parcelId: number }>()((db, p) =>
  db.updateTable('inbox').set({ state: p.state, reason: p.reason, parcel_id: p.parcelId }).where('id', '=', p.id),
)
const twin = statement<{ parcelId: number; digest: Uint8Array }>()((db, p) =>
  db.selectFrom('inbox').select('id').where('parcel_id', '=', p.parcelId).where('digest', '=', p.digest),
)

/** Changes the state, reason and parcel of a stored push. */
export function updateInboxState(session: Session, { inboxId, state, reason, parcelId }: InboxWrite): void {
  session.enqueueWrite(updateState, { id: inboxId, state: INBOX_STATES[state], reason, parcelId })
}

/** Returns the inbox id of the parcel's push with this digest; null if there is no such push. */
export async function findTwin(session: Session, parcelId: number, digest: string): Promise<number | null> {
  const [row] = await session.all(twin, { parcelId, digest: digestBytes(digest) })
  return row?.id ?? null
}

const recordedOf = statement<{ parcelId: number; after: Uint8Array; limit: number }>()((db, p) =>
  db
    .selectFrom('inbox')
    .select(['id', 'digest', 'body'])
    .where('parcel_id', '=', p.parcelId)
    .where('digest', '>', p.after)
    .where('state', '=', INBOX_STATES.recorded)
    .where('body', 'is not', null)
    .orderBy('digest')
    .limit(p.limit),
)

/** Lists a parcel's recorded pushes by digest, a page at a time. */
export async function listPushes(
  session: Session,
  request: { readonly parcelId: number; readonly after: Uint8Array; readonly limit: number },
): Promise<readonly KeptPush[]> {
  const rows = await session.all(recordedOf, request)
  return rows.flatMap(({ id, digest, body }) => (body === null ? [] : [{ inboxId: id, digest, body }]))
}

export async function countQuarantined(session: Session): Promise<number> {
  const [row] = await session.all(quarantined, {})
  return row?.count ?? 0
}

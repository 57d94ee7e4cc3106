import { bodyDigest } from '../../domain/digest.ts'
import type { InboxEntry, KeptPush } from '../../domain/ingest/inbox.ts'
import type { Session } from '../engine.ts'
import { oneOf, statement } from '../statement.ts'

/** States by their number in the table. */
export const INBOX_STATES = { recorded: 0, quarantined: 1, expired: 2 } as const satisfies Readonly<Record<InboxEntry['state'], number>>

/** A push that was not recorded belongs to no parcel, so that it is no duplicate when it is. */
const NO_PARCEL = 0

const moveAll = statement<{ ids: string; into: number }>()((db, p) =>
  db.updateTable('inbox').set({ parcel_id: p.into }).where('parcel_id', 'in', oneOf(p.ids)),
)

const insertNew = statement<{
  digest: Uint8Array
  receivedAtMs: number
  keyIndex: number
  contentEncoding: string | null
  state: number
  reason: string | null
  parcelId: number
  body: Uint8Array
}>()((db, p) =>
  db
    .insertInto('inbox')
    .values({
      digest: p.digest,
      received_at_ms: p.receivedAtMs,
      key_index: p.keyIndex,
      content_encoding: p.contentEncoding,
      state: p.state,
      reason: p.reason,
      parcel_id: p.parcelId,
      body: p.body,
    })
    .onConflict((conflict) => conflict.columns(['parcel_id', 'digest']).doNothing()),
)

const countDuplicate = statement<{ parcelId: number; digest: Uint8Array }>()((db, p) =>
  db
    .updateTable('inbox')
    .set((row) => ({ duplicates: row('duplicates', '+', 1) }))
    .where('parcel_id', '=', p.parcelId)
    .where('digest', '=', p.digest),
)

const quarantined = statement()((db) =>
  db
    .selectFrom('inbox')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('state', '=', INBOX_STATES.quarantined),
)

export async function moveInbox(session: Session, from: readonly number[], into: number): Promise<void> {
  await session.run(moveAll, { ids: JSON.stringify(from), into })
}

/**
 * Returns the number it is kept under; null: it was received before, and is counted. It is looked for among its parcel's, so that the index
 * grows where parcels are new.
 */
export async function saveInbox(session: Session, { push, state, reason, parcelId }: InboxEntry): Promise<number | null> {
  const key = { parcelId: parcelId ?? NO_PARCEL, digest: bodyDigest(push.body) }
  const kept = await session.run(insertNew, {
    ...key,
    receivedAtMs: push.receivedAtMs,
    keyIndex: push.keyIndex,
    contentEncoding: push.contentEncoding,
    state: INBOX_STATES[state],
    reason,
    body: push.body,
  })
  if (kept.rows > 0) return kept.insertedId
  await session.run(countDuplicate, key)
  return null
}

const deleteRow = statement<{ id: number }>()((db, p) => db.deleteFrom('inbox').where('id', '=', p.id))

export async function deleteInbox(session: Session, id: number): Promise<void> {
  await session.run(deleteRow, { id })
}

const resettle = statement<{ id: number; state: number; reason: string | null; parcelId: number }>()((db, p) =>
  db.updateTable('inbox').set({ state: p.state, reason: p.reason, parcel_id: p.parcelId }).where('id', '=', p.id),
)
const twin = statement<{ parcelId: number; digest: Uint8Array }>()((db, p) =>
  db.selectFrom('inbox').select('id').where('parcel_id', '=', p.parcelId).where('digest', '=', p.digest),
)

/** See the verb of the same name. */
export async function resettlePush(session: Session, id: number, { push, state, reason, parcelId }: InboxEntry): Promise<number | null> {
  const key = { parcelId: parcelId ?? NO_PARCEL, digest: bodyDigest(push.body) }
  const [known] = await session.all(twin, key)
  if (known === undefined || known.id === id) {
    await session.run(resettle, { id, state: INBOX_STATES[state], reason, parcelId: key.parcelId })
    return id
  }
  await deleteInbox(session, id)
  await session.run(countDuplicate, key)
  return null
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

/** See the verb of the same name. */
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

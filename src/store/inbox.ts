import type { InboxEntry } from '../flow/ports.ts'
import type { Session } from './engine.ts'
import { statement } from './statement.ts'

/** States by their number in the table. */
const RECORDED = 0
const QUARANTINED = 1

const findByDigest = statement<{ digest: Uint8Array }>()((db, p) => db.selectFrom('inbox').select('id').where('digest', '=', p.digest))

const countOne = statement<{ digest: Uint8Array }>()((db, p) =>
  db
    .updateTable('inbox')
    .set((row) => ({ duplicates: row('duplicates', '+', 1) }))
    .where('digest', '=', p.digest),
)

const insert = statement<{
  digest: Uint8Array
  receivedAtMs: number
  keyIndex: number
  contentEncoding: string | null
  state: number
  reason: string | null
  parcelId: number | null
  body: Uint8Array
}>()((db, p) =>
  db.insertInto('inbox').values({
    digest: p.digest,
    received_at_ms: p.receivedAtMs,
    key_index: p.keyIndex,
    content_encoding: p.contentEncoding,
    state: p.state,
    reason: p.reason,
    parcel_id: p.parcelId,
    body: p.body,
  }),
)

const quarantined = statement()((db) =>
  db
    .selectFrom('inbox')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('state', '=', QUARANTINED),
)

export async function hasPush(session: Session, digest: Uint8Array): Promise<boolean> {
  return (await session.all(findByDigest, { digest })).length > 0
}

export async function countDuplicate(session: Session, digest: Uint8Array): Promise<void> {
  await session.run(countOne, { digest })
}

export async function saveInbox(session: Session, { push, digest, state, reason, parcelId }: InboxEntry): Promise<void> {
  await session.run(insert, {
    digest,
    receivedAtMs: push.receivedAtMs,
    keyIndex: push.keyIndex,
    contentEncoding: push.contentEncoding,
    state: state === 'recorded' ? RECORDED : QUARANTINED,
    reason,
    parcelId,
    body: push.body,
  })
}

export async function countQuarantined(session: Session): Promise<number> {
  const [row] = await session.all(quarantined, {})
  return row?.count ?? 0
}

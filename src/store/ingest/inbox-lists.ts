import { sql } from 'kysely'
import type { InboxEntry, InboxPage, InboxPush, InboxQuery, InspectedPush } from '../../domain/ingest/inbox.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import { INBOX_STATES } from './inbox.ts'

/** How many pushes one page may scan: a state without an index could otherwise require a full scan. */
const LOOKED_AT_MAX = 10_000

const COLUMNS = ['id', 'state', 'reason', 'received_at_ms', 'key_index', 'content_encoding', 'duplicates'] as const
const bodyBytes = sql<number | null>`length(body)`.as('body_bytes')

const newest = statement()((db) => db.selectFrom('inbox').select('id').orderBy('id', 'desc').limit(1))

/** These states are rare and have a partial index. */
const heldPage = (state: number) =>
  statement<{ before: number; limit: number }>()((db, p) =>
    db
      .selectFrom('inbox')
      .select(COLUMNS)
      .select(bodyBytes)
      .where('state', '=', state)
      .where('id', '<', p.before)
      .orderBy('id', 'desc')
      .limit(p.limit),
  )
const held = { quarantined: heldPage(INBOX_STATES.quarantined), expired: heldPage(INBOX_STATES.expired) }

const stretch = statement<{ from: number; before: number; limit: number; most: number }>()((db, p, { unindexed }) =>
  db
    .selectFrom('inbox')
    .select(COLUMNS)
    .select(bodyBytes)
    .where('id', '>=', p.from)
    .where('id', '<', p.before)
    .where((row) => unindexed(row.ref('state')), '<=', p.most)
    .orderBy('id', 'desc')
    .limit(p.limit),
)

const one = statement<{ id: number }>()((db, p) =>
  db.selectFrom('inbox').select(COLUMNS).select(bodyBytes).select('body').where('id', '=', p.id),
)

interface Row {
  readonly id: number
  readonly state: number
  readonly reason: string | null
  readonly received_at_ms: number
  readonly key_index: number
  readonly content_encoding: string | null
  readonly duplicates: number
  readonly body_bytes: number | null
}

/** Lists pushes, newest first. */
export async function listInbox(session: Session, { state, before, limit }: InboxQuery): Promise<InboxPage> {
  if (state === 'quarantined' || state === 'expired') {
    const rows = await session.all(held[state], { before: before ?? Number.MAX_SAFE_INTEGER, limit })
    return { pushes: rows.map(decodePush), next: rows.length < limit ? null : (rows.at(-1)?.id ?? null) }
  }
  const [last] = await session.all(newest, {})
  const end = before ?? (last?.id ?? 0) + 1
  const from = Math.max(1, end - LOOKED_AT_MAX)
  const most = state === null ? INBOX_STATES.expired : INBOX_STATES.recorded
  const rows = await session.all(stretch, { from, before: end, limit, most })
  const lastShown = rows.length < limit ? from : (rows.at(-1)?.id ?? from)
  return { pushes: rows.map(decodePush), next: lastShown > 1 ? lastShown : null }
}

/** Loads a push with its bytes; null if there is no such push. */
export async function findPush(session: Session, inboxId: number): Promise<InspectedPush | null> {
  const [row] = await session.all(one, { id: inboxId })
  return row === undefined ? null : { ...decodePush(row), body: row.body }
}

function decodePush(row: Row): InboxPush {
  return {
    inboxId: row.id,
    state: stateOf(row.state),
    reason: row.reason,
    receivedAtMs: row.received_at_ms,
    keyIndex: row.key_index,
    contentEncoding: row.content_encoding,
    duplicates: row.duplicates,
    bodyBytes: row.body_bytes,
  }
}

function stateOf(number: number): InboxEntry['state'] {
  if (number === INBOX_STATES.quarantined) return 'quarantined'
  return number === INBOX_STATES.expired ? 'expired' : 'recorded'
}

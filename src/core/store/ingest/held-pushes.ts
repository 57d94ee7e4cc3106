import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { sql } from 'kysely'
import { QUARANTINE_REASONS } from '../../domain/history/observation.ts'
import type { DismissedHeld, HeldGroup, HeldPage, HeldRange, HeldSelection } from '../../domain/ingest/inbox.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import { findPushes } from './inbox-lists.ts'
import { INBOX_STATES } from './inbox-rows.ts'

/** A page has fewer pushes if their bodies are larger than this, because a body may be a megabyte long. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024

type After = { readonly after: number; readonly upTo: number; readonly limit: number }

const countOf = [sql<number>`count(*)`.as('count'), sql<number | null>`min(id)`.as('first'), sql<number | null>`max(id)`.as('last')]

const pageIn = (state: number, isOfReason: boolean) =>
  statement<After & { readonly reason: string }>()((db, p) =>
    db
      .selectFrom('inbox')
      .select('id')
      .select(sql<number | null>`length(body)`.as('body_bytes'))
      .where('state', '=', state)
      .$if(isOfReason, (rows) => rows.where('reason', '=', p.reason))
      .where('id', '>', p.after)
      .where('id', '<=', p.upTo)
      .orderBy('id')
      .limit(p.limit),
  )
/** Each state that this file lists is rare and has a partial index. */
const heldIn = (state: number) => ({
  all: statement()((db) => db.selectFrom('inbox').select(countOf).where('state', '=', state).where('id', '>', 0)),
  allOfReason: statement<{ readonly reason: string }>()((db, p) =>
    db.selectFrom('inbox').select(countOf).where('state', '=', state).where('reason', '=', p.reason),
  ),
  any: pageIn(state, false),
  ofReason: pageIn(state, true),
})
const held = {
  quarantined: heldIn(INBOX_STATES.quarantined),
  expired: heldIn(INBOX_STATES.expired),
  dismissed: heldIn(INBOX_STATES.dismissed),
}

type Selection = Pick<HeldSelection, 'reason'> & { readonly state: keyof typeof held }

const receivedAt = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('inbox').select(['id', 'received_at_ms']).where('id', 'in', oneOf(p.ids)),
)
/** The `case` keeps the planner from using the index of quarantined pushes, so that it finds the rows by their ids. */
const dismiss = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .updateTable('inbox')
    .set({ state: sql.lit(INBOX_STATES.dismissed) })
    .where('id', 'in', oneOf(p.ids))
    .where(sql<boolean>`(case when state = ${sql.lit(INBOX_STATES.quarantined)} then 1 else 0 end) <> 0`)
    .returning('id'),
)

/** Counts pushes that were not recorded, by reason. The reason with the newest push comes first. */
export async function countHeld(session: Session, state: HeldSelection['state']): Promise<readonly HeldGroup[]> {
  // There are few reasons, so send one query for each reason. Each query reads only its reason's part of the index.
  const found =
    state === 'expired'
      ? [session.all(held.expired.all, {})]
      : QUARANTINE_REASONS.map((reason) => session.all(held.quarantined.allOfReason, { reason }))
  const counted = (await Promise.all(found)).flatMap(([row], at) => {
    const reason = state === 'expired' ? null : (QUARANTINE_REASONS[at] ?? null)
    return row === undefined || row.first === null || row.last === null ? [] : [{ ...row, reason, first: row.first, last: row.last }]
  })
  const ids = counted.flatMap(({ first, last }) => [first, last])
  const times = new Map((ids.length === 0 ? [] : await session.all(receivedAt, { ids })).map((row) => [row.id, row.received_at_ms]))
  const end = (inboxId: number) => ({ inboxId, receivedAtMs: times.get(inboxId) ?? 0 })
  return counted
    .toSorted((a, b) => b.last - a.last)
    .map(({ reason, count, first, last }) => ({ reason, count, first: end(first), last: end(last) }))
}

/** Lists pushes that were not recorded, the oldest first. */
export async function listHeld(session: Session, { state, reason, ...range }: Selection & HeldRange): Promise<HeldPage> {
  const rows = await listRows(session, { state, reason, ...range })
  let bytes = 0
  const ids = rows
    .filter(({ body_bytes: length }, at) => {
      bytes += length ?? 0
      return at === 0 || bytes <= PAGE_BYTES_MAX
    })
    .map(({ id }) => id)
  const isLast = ids.length === rows.length && rows.length < range.limit
  const pushes = ids.length === 0 ? [] : await findPushes(session, ids)
  return { pushes: pushes.toSorted((a, b) => a.inboxId - b.inboxId), next: isLast ? null : (ids.at(-1) ?? null) }
}

/** False: there is no quarantined push with this id. */
export async function dismissPush(session: Session, inboxId: number): Promise<boolean> {
  return (await session.all(dismiss, { ids: [inboxId] })).length > 0
}

/** Dismisses quarantined pushes, the oldest first. */
export async function dismissHeld(
  session: Session,
  { reason, ...range }: Pick<HeldSelection, 'reason'> & HeldRange,
): Promise<DismissedHeld> {
  const ids = (await listRows(session, { state: 'quarantined', reason, ...range })).map(({ id }) => id)
  const dismissed = ids.length === 0 ? [] : await session.all(dismiss, { ids })
  return { count: dismissed.length, next: ids.length < range.limit ? null : (ids.at(-1) ?? null) }
}

async function listRows(session: Session, { state, reason, ...range }: Selection & HeldRange) {
  return await session.all(reason === null ? held[state].any : held[state].ofReason, { ...range, reason: reason ?? '' })
}

const UNPACKED_BYTES_MAX = 16 * 1024 * 1024

type Unpack = (body: Uint8Array, options: { readonly maxOutputLength: number }) => Uint8Array

const UNPACKERS: ReadonlyMap<string, Unpack> = new Map<string, Unpack>([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
])

/** Decompresses a body as its `Content-Encoding` says; null: the encoding is unknown or the body is damaged or too large. */
export function unpackBody(body: Uint8Array, contentEncoding: string | null): Uint8Array | null {
  const names = (contentEncoding ?? '').split(',').map((name) => name.trim().toLowerCase())
  let unpacked = body
  for (const name of names.filter((one) => one !== '' && one !== 'identity').toReversed()) {
    const unpack = UNPACKERS.get(name)
    if (unpack === undefined) return null
    try {
      unpacked = unpack(unpacked, { maxOutputLength: UNPACKED_BYTES_MAX })
    } catch {
      return null
    }
  }
  return unpacked
}

import { type MentionSource, placeAfter, scrubText } from '../../../domain/admin/erasure.ts'
import { wordsInBody } from '../../../domain/ingest/search-body.ts'
import type { SearchedMentions, SearchRequest } from '../../../flow/admin/erasure/erasure-ports.ts'
import type { Session } from '../../engine.ts'
import { listHeld } from '../../ingest/held-pushes.ts'
import { unpackBody } from '../../ingest/unpack-body.ts'
import { statement } from '../../statement.ts'

type Page = { readonly after: number; readonly limit: number }

const actions = statement<Page>()((db, p) =>
  db.selectFrom('operator_action').select(['id', 'target', 'detail as text']).where('id', '>', p.after).orderBy('id').limit(p.limit),
)
const saveAction = statement<{ id: number; target: string | null; text: string }>()((db, p) =>
  db.updateTable('operator_action').set({ target: p.target, detail: p.text }).where('id', '=', p.id),
)
const events = statement<Page>()((db, p) =>
  db.selectFrom('operator_event').select(['id', 'detail as text']).where('id', '>', p.after).orderBy('id').limit(p.limit),
)
const saveEvent = statement<{ id: number; text: string }>()((db, p) =>
  db.updateTable('operator_event').set({ detail: p.text }).where('id', '=', p.id),
)
const jobs = statement<Page>()((db, p) =>
  db.selectFrom('job').select(['id', 'failure as target', 'task as text']).where('id', '>', p.after).orderBy('id').limit(p.limit),
)
const saveJob = statement<{ id: number; target: string | null; text: string }>()((db, p) =>
  db.updateTable('job').set({ failure: p.target, task: p.text }).where('id', '=', p.id),
)
const removePushes = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) => db.deleteFrom('inbox').where('id', 'in', oneOf(p.ids)))

interface TextRow {
  readonly id: number
  readonly text: string
  readonly target?: string | null
}

const PAGES: Readonly<Record<'actions' | 'events' | 'jobs', (session: Session, page: Page) => Promise<readonly TextRow[]>>> = {
  actions: (session, page) => session.all(actions, page),
  events: (session, page) => session.all(events, page),
  jobs: (session, page) => session.all(jobs, page),
}

function save(session: Session, source: 'actions' | 'events' | 'jobs', { id, text, target = null }: TextRow): void {
  if (source === 'events') session.enqueueWrite(saveEvent, { id, text })
  else session.enqueueWrite(source === 'actions' ? saveAction : saveJob, { id, target, text })
}

/** See `AdminTx.searchMentions`. */
export async function searchMentions(session: Session, request: SearchRequest): Promise<SearchedMentions> {
  const { source } = request.place
  return isOfPushes(source) ? await searchPushes(session, request, source) : await searchTexts(session, request, source)
}

function isOfPushes(source: MentionSource): source is 'quarantined' | 'expired' | 'dismissed' {
  return source === 'quarantined' || source === 'expired' || source === 'dismissed'
}

async function searchPushes(
  session: Session,
  { identifiers, place, limit }: SearchRequest,
  state: 'quarantined' | 'expired' | 'dismissed',
): Promise<SearchedMentions> {
  const { pushes, next } = await listHeld(session, { state, reason: null, after: place.after, upTo: Number.MAX_SAFE_INTEGER, limit })
  const found = new Set<string>()
  const gone: number[] = []
  let unreadable = 0
  for (const { inboxId, body, contentEncoding } of pushes) {
    if (body === null) continue
    const unpacked = unpackBody(body, contentEncoding)
    if (unpacked === null) {
      unreadable += 1
      continue
    }
    const words = wordsInBody(unpacked)
    const named = identifiers.filter((value) => words.has(value))
    for (const value of named) found.add(value)
    if (named.length > 0) gone.push(inboxId)
  }
  if (gone.length > 0) await session.run(removePushes, { ids: gone })
  return { pushes: gone.length, mentions: 0, unreadable, found: [...found], next: placeAfter(place, next) }
}

async function searchTexts(
  session: Session,
  { identifiers, place, limit }: SearchRequest,
  source: 'actions' | 'events' | 'jobs',
): Promise<SearchedMentions> {
  const rows = await PAGES[source](session, { after: place.after, limit })
  const wanted = new Set(identifiers)
  let mentions = 0
  for (const row of rows) {
    const text = scrubText(row.text, wanted)
    const target = row.target === undefined || row.target === null ? null : scrubText(row.target, wanted)
    if (text === null && target === null) continue
    mentions += 1
    save(session, source, { id: row.id, text: text ?? row.text, target: target ?? row.target ?? null })
  }
  const last = rows.length < limit ? null : (rows.at(-1)?.id ?? null)
  return { pushes: 0, mentions, unreadable: 0, found: [], next: placeAfter(place, last) }
}

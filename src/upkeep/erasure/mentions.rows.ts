import { type NameSearch, namesInBody, wordsInBody } from '../../core/domain/names-in-text.ts'
import type { Session } from '../../core/store/engine.ts'
import { listHeld, unpackBody } from '../../core/store/ingest/held-pushes.ts'
import { statement } from '../../core/store/statement.ts'
import {
  eraseInRecord,
  eraseInText,
  isOfPushes,
  type MentionPlace,
  type MentionSource,
  type PushSource,
  placeAfter,
  REFUSED_HEADERS,
} from './erasure.rules.ts'

/** Selects a page of records that may name an identifier but are not parcels, such as pushes in quarantine. */
export interface SearchedPage {
  readonly place: MentionPlace
  readonly limit: number
}

export interface SearchedMentions {
  /** How many pushes without a parcel were removed because they name one of the identifiers. */
  readonly pushes: number
  /** How many other records named one of the identifiers. The identifier was removed from them. */
  readonly mentions: number
  /** How many records stay as they are although they may name an identifier: they cannot be read, or have it as a part of a longer word. */
  readonly unreadable: number
  /** The identifiers that the records named. */
  readonly found: readonly string[]
  /** Where the next page begins; null: this was the last page. */
  readonly next: MentionPlace | null
}

type Page = { readonly after: number; readonly limit: number }

const actions = statement<Page>()((db, p) =>
  db
    .selectFrom('operator_action')
    .select(['id', 'action as record', 'target_kind', 'target', 'detail as text'])
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
)
const saveAction = statement<{ id: number; text: string }>()((db, p) =>
  db.updateTable('operator_action').set({ detail: p.text }).where('id', '=', p.id),
)
const saveTarget = statement<{ id: number; target: string }>()((db, p) =>
  db.updateTable('operator_action').set({ target: p.target }).where('id', '=', p.id),
)
const events = statement<Page>()((db, p) =>
  db
    .selectFrom('operator_event')
    .select(['id', 'event as record', 'detail as text'])
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
)
const saveEvent = statement<{ id: number; text: string }>()((db, p) =>
  db.updateTable('operator_event').set({ detail: p.text }).where('id', '=', p.id),
)
/** The task of a job holds numbers and enumerations, so only the failure can name a parcel. */
const jobs = statement<Page>()((db, p) =>
  db
    .selectFrom('job')
    .select(['id', 'kind as record', 'failure as target', 'task as text'])
    .where('id', '>', p.after)
    .orderBy('id')
    .limit(p.limit),
)
const saveFailure = statement<{ id: number; target: string }>()((db, p) =>
  db.updateTable('job').set({ failure: p.target }).where('id', '=', p.id),
)
const refusals = statement<Page>()((db, p) =>
  db.selectFrom('refusal').select(['id', 'headers as text']).where('id', '>', p.after).orderBy('id').limit(p.limit),
)
const saveHeaders = statement<{ id: number; text: string }>()((db, p) =>
  db.updateTable('refusal').set({ headers: p.text }).where('id', '=', p.id),
)
const removePushes = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) => db.deleteFrom('inbox').where('id', 'in', oneOf(p.ids)))

interface TextRow {
  readonly id: number
  readonly text: string
  readonly target: string | null
  /** Under this name `eraseInRecord` knows which members of `text` hold free text. */
  readonly record: string
}

type TextSource = Exclude<MentionSource, PushSource>

const PAGES: Readonly<Record<TextSource, (session: Session, page: Page) => Promise<readonly TextRow[]>>> = {
  actions: async (session, page) =>
    // A target of another kind is an id or a name.
    (await session.all(actions, page)).map((row) => ({ ...row, target: row.target_kind === 'parcel' ? row.target : null })),
  events: async (session, page) => (await session.all(events, page)).map((row) => ({ ...row, target: null })),
  jobs: (session, page) => session.all(jobs, page),
  refusals: async (session, page) => (await session.all(refusals, page)).map((row) => ({ ...row, target: null, record: REFUSED_HEADERS })),
}

export type SearchRequest = SearchedPage & { readonly search: NameSearch }

/** Searches a page of records for identifiers, and removes them. `words`: the words of the removed pushes. */
export async function searchMentions(
  session: Session,
  request: SearchRequest,
): Promise<{ readonly searched: SearchedMentions; readonly words: ReadonlySet<string> }> {
  const { source } = request.place
  if (isOfPushes(source)) return await searchPushes(session, request, source)
  return { searched: await searchTexts(session, request, source), words: new Set() }
}

async function searchPushes(
  session: Session,
  { search, place, limit }: SearchRequest,
  state: PushSource,
): ReturnType<typeof searchMentions> {
  const { pushes, next } = await listHeld(session, { state, reason: null, after: place.after, upTo: Number.MAX_SAFE_INTEGER, limit })
  const [found, words] = [new Set<string>(), new Set<string>()]
  const gone: number[] = []
  let unreadable = 0
  for (const { inboxId, body, contentEncoding } of pushes) {
    if (body === null) continue
    const unpacked = unpackBody(body, contentEncoding)
    const { named, isUnclear } = unpacked === null ? UNREADABLE : namesInBody(unpacked, search)
    for (const value of named) found.add(value)
    if (named.length > 0) gone.push(inboxId)
    if (unpacked !== null && named.length > 0) for (const word of wordsInBody(unpacked)) words.add(word)
    if (isUnclear) unreadable += 1
  }
  if (gone.length > 0) await session.run(removePushes, { ids: gone })
  return { searched: { pushes: gone.length, mentions: 0, unreadable, found: [...found], next: placeAfter(place, next) }, words }
}

const UNREADABLE = { named: [], isUnclear: true }

async function searchTexts(session: Session, { search, place, limit }: SearchRequest, source: TextSource): Promise<SearchedMentions> {
  const rows = await PAGES[source](session, { after: place.after, limit })
  const found = new Set<string>()
  let [mentions, unreadable] = [0, 0]
  for (const row of rows) {
    const text = eraseInRecord(row.record, row.text, search)
    const target = row.target === null ? null : eraseInText(row.target, search)
    const changed = text === 'unreadable' ? null : text
    if (text === 'unreadable' || changed?.isUnclear === true || target?.isUnclear === true) unreadable += 1
    const names = [...(changed?.names ?? []), ...(target?.names ?? [])]
    if (names.length === 0) continue
    mentions += 1
    for (const value of names) found.add(value)
    save(session, source, { ...row, text: changed?.text ?? row.text }, target?.text ?? null)
  }
  const last = rows.length < limit ? null : (rows.at(-1)?.id ?? null)
  return { pushes: 0, mentions, unreadable, found: [...found], next: placeAfter(place, last) }
}

/** `target` null: it stays as it is. */
function save(session: Session, source: TextSource, { id, text }: TextRow, target: string | null): void {
  if (source === 'events') session.enqueueWrite(saveEvent, { id, text })
  if (source === 'actions') session.enqueueWrite(saveAction, { id, text })
  if (source === 'refusals') session.enqueueWrite(saveHeaders, { id, text })
  if (target === null) return
  if (source === 'actions') session.enqueueWrite(saveTarget, { id, target })
  if (source === 'jobs') session.enqueueWrite(saveFailure, { id, target })
}

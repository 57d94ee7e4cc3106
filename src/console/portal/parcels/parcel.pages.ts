import { Readable } from 'node:stream'
import { WATCH_LINE_LENGTH_MAX, type WatchListFormat } from '../../../core/domain/admin/parcel-list.ts'
import { AppError } from '../../../core/domain/errors.ts'
import { parseTypedIdentifier } from '../../../core/domain/identifiers.ts'
import { type ExplainedParcel, readCursor, readPrefix, STOPPED_REASONS } from '../../../core/flow/admin/parcels/parcel-queries.ts'
import { readLines } from '../../../core/http/server/text-body.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { type Form, type FormFile, mistakeIn } from '../form.ts'
import type { PageAnswer, PageRoute, Visit } from '../layout.ts'
import { type ParcelSaid, parcelPage } from './parcel.page.ts'
import { COLUMN_LENGTH_MAX, parcelListPage, type WatchSaid } from './parcel-list.page.ts'

const LIST_MAX = 100
const ANY = { by: null, fromMs: null, toMs: null }

/** A list of parcels to watch, from the text field or a file. */
interface GivenList {
  readonly format: WatchListFormat
  readonly column: string | null
  readonly lines: readonly string[]
  /** The lines for the import. Each typed line is turned into a JSON value; a line of a file is unchanged. */
  readonly read: readonly string[]
}

/** Turns each typed line into a JSON string, without what people type along with an identifier. CSV would split a line at its commas, and could take the first line for a header. */
function typedList(text: string): GivenList {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  return {
    format: 'ndjson',
    column: null,
    lines,
    read: lines.map((line) => (line === '' ? '' : JSON.stringify(parseTypedIdentifier(line) ?? line))),
  }
}

async function listInFile({ name, bytes }: FormFile, column: string): Promise<GivenList> {
  const lines: string[] = []
  const chunks = Readable.from([bytes])
  for await (const line of readLines(chunks, { bytesMax: bytes.length, lineLengthMax: WATCH_LINE_LENGTH_MAX })) lines.push(line)
  const format = name.toLowerCase().endsWith('.ndjson') ? 'ndjson' : 'csv'
  return { format, column: column === '' ? null : column, lines, read: lines }
}

/** Null: the list is empty. Throws `bad_request`. */
async function givenList({ file, get }: Form): Promise<GivenList | null> {
  const typed = get('identifiers')
  if (file !== null && typed.trim() !== '') throw mistakeIn('file', 'Give a list or a file, not both.')
  const list = file === null ? typedList(typed) : await listInFile(file, get('column').trim().slice(0, COLUMN_LENGTH_MAX))
  return list.lines.every((line) => line.trim() === '') ? null : list
}

type Parts = Pick<UseCases, 'lookAtParcels' | 'operations' | 'manageParcels' | 'watchList'>

// oxlint-disable-next-line max-lines-per-function -- a list of routes, and the answers to them
export function parcelPages({ lookAtParcels, operations, manageParcels, watchList }: Parts): readonly PageRoute[] {
  const { watch, unwatch, refresh } = manageParcels
  return [
    { method: 'get', path: '/parcels', scope: 'status', answer: list },
    {
      method: 'post',
      path: '/parcels',
      scope: 'admin',
      takesFile: true,
      answer: watchMany,
      again: (visit, { action }) => list(visit, { kind: 'again', atMs: action.atMs }),
    },
    { method: 'get', path: '/parcels/:identifier', scope: 'status', answer: (visit) => show(visit, null) },
    { method: 'post', path: '/parcels/:identifier/watch', scope: 'admin', answer: after(watch) },
    { method: 'post', path: '/parcels/:identifier/unwatch', scope: 'admin', answer: after(unwatch) },
    { method: 'post', path: '/parcels/:identifier/refresh', scope: 'admin', answer: ask },
    {
      method: 'post',
      path: '/parcels/:identifier/ask',
      scope: 'admin',
      answer: async (visit) => {
        // The question is the order of the form, so only it stores the form.
        const { form: _, ...by } = visit.by
        await watch(visit.param('identifier'), by)
        return await ask(visit)
      },
    },
  ]

  async function show(visit: Visit, said: ParcelSaid): Promise<PageAnswer> {
    const language = visit.query('view') === 'consumer' ? visit.query('language') : null
    const parcel = await lookAtParcels.inspect(visit.param('identifier'))
    const page = parcelPage(visit, parcel, { language, said, watchedBy: await watchedBy(visit, parcel) })
    return { page, status: said === 'unavailable' ? 503 : 200 }
  }

  /** Finds who ordered the watch, by itself or in a list; null: an app asked about the parcel, or the visitor may not know. */
  async function watchedBy({ person }: Visit, { state, identifiers: [first] }: ExplainedParcel): Promise<string | null> {
    if (person.scope !== 'admin' || state.watchedAtMs === null || first === undefined) return null
    const began = { fromMs: state.watchedAtMs, toMs: state.watchedAtMs + 1 }
    const list = await operations.actions({ ...ANY, ...began, action: 'parcels.watched', target: null, cursor: null, limit: 1 })
    if (list.actions[0] !== undefined) return list.actions[0].by.name
    const target = { kind: 'parcel', id: first.value } as const
    const { actions } = await operations.actions({ ...ANY, action: 'parcel.watched', target, cursor: null, limit: 1 })
    return actions[0]?.by.name ?? null
  }

  function after(act: (identifier: string, by: Visit['by']) => Promise<{ readonly identifier: string }>): PageRoute['answer'] {
    return async ({ param, to, by }) => ({ goTo: to`/parcels/${(await act(param('identifier'), by)).identifier}` })
  }

  async function ask(visit: Visit): Promise<PageAnswer> {
    try {
      const { identifier, outcome } = await refresh(visit.param('identifier'), visit.by)
      return outcome === 'recorded' ? { goTo: visit.to`/parcels/${identifier}` } : await show(visit, 'unknown')
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'upstream_unavailable') throw error
      return await show(visit, 'unavailable')
    }
  }

  async function watchMany(visit: Visit): Promise<PageAnswer> {
    const given = await givenList(visit.form)
    if (given === null) throw mistakeIn('identifiers', 'The list is empty. Write one identifier a line, or choose a file.')
    const { read, lines, format, column } = given
    // Not atomic: the good lines are watched even if other lines are bad.
    const report = await watchList({ format, column, atomic: false, lines: Readable.from(read), by: visit.by })
    return await list(visit, { kind: 'watched', lines, report, isTyped: visit.form.file === null })
  }

  async function list(visit: Visit, said: WatchSaid = null): Promise<PageAnswer> {
    const text = visit.query('query').trim()
    const stopped = STOPPED_REASONS.find((reason) => reason === visit.query('stopped')) ?? null
    const filters = { text, status: visit.query('status').trim(), stopped }
    const prefix = text === '' ? null : readPrefix(text)
    if (text !== '' && prefix === null) return { page: parcelListPage(visit, { filters, found: null, said }) }
    const cursor = visit.query('cursor') === '' ? null : readCursor(visit.query('cursor'))
    if (cursor === null && visit.query('cursor') !== '') throw new AppError('not_found', 'The list has no such page.')
    const status = filters.status === '' ? null : filters.status
    const listed = await lookAtParcels.list({ query: prefix, status, stopped, cursor, limit: LIST_MAX })
    const [only, ...more] = listed.parcels
    const isTheOne = prefix !== null && more.length === 0 && only?.identifiers.some(({ value }) => value === prefix) === true
    if (isTheOne) return { goTo: visit.to`/parcels/${prefix}` }
    const found = { ...listed, counted: await lookAtParcels.count({ query: prefix, status, stopped }) }
    return { page: parcelListPage(visit, { filters, found, said }) }
  }
}

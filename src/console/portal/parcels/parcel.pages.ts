import { Readable } from 'node:stream'
import { WATCH_LINE_LENGTH_MAX, type WatchListFormat } from '../../../core/domain/admin/parcel-list.ts'
import { AppError } from '../../../core/domain/errors.ts'
import type { Entry } from '../../../core/domain/history/history.ts'
import { readReference } from '../../../core/domain/history/order-context.ts'
import { pickText } from '../../../core/domain/history/pull-response.ts'
import { parseTypedIdentifier } from '../../../core/domain/identifiers.ts'
import { compareBytes, receivedText } from '../../../core/domain/text.ts'
import { readLines } from '../../../core/http/server/text-body.ts'
import type { UseCases } from '../../../core/http/use-cases.ts'
import { type ExplainedParcel, readCursor, readPrefix, STOPPED_REASONS } from '../../parcels/parcel-queries.ts'
import { type Form, type FormFile, mistakeIn } from '../form.ts'
import { type Address, html, link, type Markup, markup, type Part, withQuery } from '../html.ts'
import { getPage, type PageAnswer, type PageRoute, postForm, renderPage, type Visit } from '../layout.ts'
import { actionButton, asOfLine, copyable, crumbs, facts, headline, island, stateMark } from '../parts.ts'
import { relativeTime, timeInSentence } from '../times.ts'
import { consumerTable, timeline } from './parcel-history.page.ts'
import { COLUMN_LENGTH_MAX, dueText, mainIdentifier, parcelListPage, STOPPED_BECAUSE, type WatchSaid } from './parcel-list.page.ts'

/** The message on the page: why asking the carrier brought no news. Null: no message. */
type ParcelSaid = 'unknown' | 'unavailable' | null

const SAID: Readonly<Record<NonNullable<ParcelSaid>, readonly [what: string, then: string]>> = {
  unknown: ['The carrier does not know it', ', or its answer could not be used. It is asked again at the next check.'],
  unavailable: ['The carrier cannot be asked now.', ' The next check asks it again.'],
}

/** Makes the page of one parcel. It shows the history, the newest entry first, or what a consumer sees in `language`. */
function parcelPage(
  visit: Visit,
  parcel: ExplainedParcel,
  shown: {
    readonly language: string | null
    readonly said: ParcelSaid
    readonly watchedBy: string | null
    readonly sections: Awaited<ReturnType<typeof showSections>>
  },
): string {
  const { to, nowMs, person } = visit
  const { state, identifiers, entries } = parcel
  const name = mainIdentifier(identifiers)
  const isAdmin = person.scope === 'admin'
  const watching =
    state.nextPollAtMs === null
      ? actionButton(to`/parcels/${name}/watch`, 'Watch')
      : actionButton(to`/parcels/${name}/unwatch`, 'Stop watching')
  const [latest] = entries
  const languages = consumerViews(entries)
  const language = languages.find((one) => one === shown.language) ?? null
  const main = html`${crumbs([to`/parcels`, 'Parcels'])}
${headline({
  title: name,
  isIdentifier: true,
  state:
    latest === undefined ? stateMark('none', 'nothing known') : stateMark(state.stopped === 'delivered' ? 'ok' : 'wait', latest.status),
  lead: leadOf(latest, state, nowMs),
  actions: html`${isAdmin ? html`${actionButton(to`/parcels/${name}/refresh`, 'Refresh now')}${watching}` : null}<a class="btn" href="#share">Share</a>`,
  asOf: asOfLine(nowMs, to`/parcels/${name}`, true),
  isLive: true,
})}
${noteOf(shown.said)}
${island('facts', facts(factsOf(parcel, shown.watchedBy, nowMs)))}
${isAdmin ? html`<p>${link(withQuery(to`/deliveries`, { parcel: name }), 'Its deliveries to webhooks')}, ${link(withQuery(to`/audit`, { about: 'parcel', id: name }), 'who ordered what about it')}</p>` : null}
${shown.sections.before}
${island(
  'history',
  html`${tabsOf(visit, name, languages, language)}
${language === null ? timeline(parcel, nowMs) : consumerTable(entries, language, nowMs)}`,
)}
${shown.sections.after}
${shareSection(visit, name)}
${isAdmin ? eraseSection(visit, name) : null}`
  return renderPage(visit, 'parcels', `${name} · Parcels`, main)
}

function noteOf(said: ParcelSaid): Markup | null {
  if (said === null) return null
  const [what, then] = SAID[said]
  return html`<div class="note warn" role="alert"><strong>${what}</strong>${then}</div>`
}

function leadOf(latest: Entry | undefined, { checkedAtMs, failures }: ExplainedParcel['state'], nowMs: number): Part {
  if (latest === undefined) {
    if (checkedAtMs === null || failures > 0) return 'Nothing is known of it yet.'
    return html`The carrier was asked ${relativeTime(Math.min(checkedAtMs, nowMs), nowMs)} and knows nothing of it. Is the number right?`
  }
  const place = latest.location === '' ? '' : `, ${latest.location}`
  // The words of the carrier come first. The page is in English, so English ones are shown if there are any.
  const said = pickText(latest, 'detailed', ['en'])
  const words = said === null || said.text === null || said.text === '' ? null : html`<span lang="${said.language}">${said.text}</span>`
  return html`${words ?? (latest.detailedStatus === '' ? latest.status : latest.detailedStatus)}${place}, ${relativeTime(latest.atMs, nowMs)}.`
}

function factsOf(
  { state, identifiers, distributionType, nextPollBecause, waitsForCarrier }: ExplainedParcel,
  watchedBy: string | null,
  nowMs: number,
): readonly (readonly [string, Part])[] {
  const idsOf = (isTrackingId: boolean) =>
    identifiers.filter((one) => one.isTrackingId === isTrackingId).map(({ value }) => html`<span class="id">${value}</span> `)
  const [numbers, trackingIds] = [idsOf(false), idsOf(true)]
  const ended = state.stopped === null ? 'none' : `ended: ${STOPPED_BECAUSE[state.stopped]}`
  return [
    ['The carrier last told us', state.lastSeenAtMs === null ? 'never' : relativeTime(state.lastSeenAtMs, nowMs)],
    [
      'Next check',
      state.nextPollAtMs === null
        ? ended
        : html`${dueText(state.nextPollAtMs, nowMs, { waitsForCarrier })}${nextPollBecause === null ? null : html` <small>${receivedText(nextPollBecause)}</small>`}`,
    ],
    ['Last check', state.checkedAtMs === null ? 'none yet' : relativeTime(state.checkedAtMs, nowMs)],
    ['Tracking number', numbers.length === 0 ? 'not known yet' : numbers],
    ...(trackingIds.length === 0 ? [] : [['Tracking ids', trackingIds] as const]),
    ['Kind of delivery', distributionType === '' ? 'not known yet' : distributionType],
    ...(state.watchedAtMs === null
      ? []
      : [
          [
            'Watched',
            html`${watchedBy === null ? null : html`by ${receivedText(watchedBy)} `}since ${timeInSentence(state.watchedAtMs, nowMs)}`,
          ] as const,
        ]),
  ]
}

function tabsOf({ to }: Visit, name: string, languages: readonly string[], shown: string | null): Markup {
  const current = (isCurrent: boolean) => (isCurrent ? markup(' aria-current="page"') : null)
  return html`<ul class="tabs" aria-label="Views of this parcel"><li>${link(to`/parcels/${name}`, 'History', current(shown === null))}</li>${languages.map(
    (language) =>
      html`<li>${link(
        withQuery(to`/parcels/${name}`, { view: 'consumer', language }),
        `Consumer: ${languageName(language)}`,
        current(language === shown),
      )}</li>`,
  )}</ul>`
}

/** Shows the address to share. Without `portal.publicUrl` the relay does not know its host, so script adds the origin from the browser. */
function shareSection({ to, publicOrigin }: Visit, name: string): Markup {
  const { path } = to`/parcels/${name}`
  return html`<section aria-labelledby="share"><h2 id="share">Share</h2>
<p>${copyable('share-url', `${publicOrigin ?? ''}${path}`, 'the address of this page')}</p>
<p class="dim">Whoever opens it logs in first; a colleague with the scope <code>status</code> sees this page without its buttons.</p>
<p>Apps read this parcel with <code>GET /v1/status/${name}/all?language=en</code></p></section>`
}

function eraseSection({ to }: Visit, name: string): Markup {
  return html`<section class="danger-zone" aria-labelledby="dz"><h2 id="dz">Erase</h2>
<details><summary>Erase this parcel and everything about it</summary><form class="form" method="post" action="${to`/parcels/${name}/erase`.path}"><p>This removes its pushes, its history, its deliveries, and what other records say about it. Later pushes about it are not kept. This cannot be undone.</p>
<div class="field"><label for="sure">Type ${name} to confirm</label><input id="sure" name="confirm" autocomplete="off" spellcheck="false"></div><p><button class="btn danger sure" type="submit">Erase ${name} for good</button></p></form></details></section>`
}

/** The most tabs for languages. The carrier may use many languages, and more tabs would push the history out of sight. */
const VIEWS_MAX = 8
const NAMES = new Intl.DisplayNames('en', { type: 'language' })

/** Returns the languages, as tags, in which entries have texts for consumers. */
function consumerViews(entries: readonly Entry[]): readonly string[] {
  const languages = entries.filter(({ displayToConsumer }) => displayToConsumer).flatMap(({ texts }) => Object.keys(texts))
  return [...new Set(languages)].toSorted(compareBytes).slice(0, VIEWS_MAX)
}

/** Returns the English name of a language, or its tag if the language has no name. */
function languageName(tag: string): string {
  try {
    return NAMES.of(tag) ?? tag
  } catch {
    return tag
  }
}

const LIST_MAX = 100
const ANY_PARCEL = { query: null, status: null, stopped: null, cursor: null }
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

interface Parts extends Pick<UseCases, 'lookAtParcels' | 'operations' | 'manageParcels' | 'watchList'> {
  readonly parcelSections: readonly ParcelSection[]
}

// oxlint-disable-next-line max-lines-per-function -- a list of routes, and the answers to them
export function parcelPages({ lookAtParcels, operations, manageParcels, watchList, parcelSections }: Parts): readonly PageRoute[] {
  const { watch, unwatch, refresh } = manageParcels
  return [
    getPage('/parcels', list, { scope: 'status' }),
    postForm('/parcels', watchMany, { takesFile: true, again: (visit, { action }) => list(visit, { kind: 'again', atMs: action.atMs }) }),
    getPage('/parcels/:identifier', (visit) => show(visit, null), { scope: 'status' }),
    postForm('/parcels/:identifier/watch', after(watch)),
    postForm('/parcels/:identifier/unwatch', after(unwatch)),
    postForm('/parcels/:identifier/refresh', ask),
    postForm('/parcels/:identifier/ask', async (visit) => {
      // The question is the order of the form, so only it stores the form.
      const { form: _, ...by } = visit.by
      await watch(visit.param('identifier'), by)
      return await ask(visit)
    }),
  ]

  async function show(visit: Visit, said: ParcelSaid): Promise<PageAnswer> {
    const language = visit.query('view') === 'consumer' ? visit.query('language') : null
    const parcel = await lookAtParcels.inspect(visit.param('identifier'))
    const [sections, by] = await Promise.all([showSections(parcelSections, visit, parcel), watchedBy(visit, parcel)])
    const page = parcelPage(visit, parcel, { language, said, watchedBy: by, sections })
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
    const reference = readReference(visit.query('reference'))
    const stopped = STOPPED_REASONS.find((reason) => reason === visit.query('stopped')) ?? null
    const filters = { text: reference ?? text, reference, status: visit.query('status').trim(), stopped }
    const prefix = text === '' || reference !== null ? null : readPrefix(text)
    const ofOrder = reference === null && text !== '' ? await orderNamed(visit, text) : null
    if (prefix === null && reference === null && text !== '')
      return ofOrder ?? { page: parcelListPage(visit, { filters, found: null, ofOrder: null, said }) }
    const cursor = visit.query('cursor') === '' ? null : readCursor(visit.query('cursor'))
    if (cursor === null && visit.query('cursor') !== '') throw new AppError('not_found', 'The list has no such page.')
    const status = filters.status === '' ? null : filters.status
    const listed = await lookAtParcels.list({ query: prefix, reference, status, stopped, cursor, limit: LIST_MAX })
    if (ofOrder !== null && listed.parcels.length === 0 && listed.next === null) return ofOrder
    const [only, ...more] = listed.parcels
    const isTheOne = prefix !== null && more.length === 0 && only?.identifiers.some(({ value }) => value === prefix) === true
    if (isTheOne) return { goTo: visit.to`/parcels/${prefix}` }
    const found = { ...listed, counted: await lookAtParcels.count({ query: prefix, reference, status, stopped }) }
    return { page: parcelListPage(visit, { filters, found, ofOrder: ofOrder?.goTo ?? null, said }) }
  }

  /** Finds where the parcels of an order are shown, if a text is its number: the page of the only one, or their list. Null: no order has it. */
  async function orderNamed(visit: Visit, text: string): Promise<{ readonly goTo: Address } | null> {
    const reference = readReference(text)
    if (reference === null) return null
    const { parcels } = await lookAtParcels.list({ ...ANY_PARCEL, reference, limit: 2 })
    const [first, ...more] = parcels
    if (first === undefined) return null
    if (more.length === 0) return { goTo: visit.to`/parcels/${mainIdentifier(first.identifiers)}` }
    const filters = { status: visit.query('status').trim(), stopped: visit.query('stopped') }
    return { goTo: withQuery(visit.to`/parcels`, { reference, ...filters }) }
  }
}

/** A section of the page of a parcel. */
export interface ParcelSection {
  /** The anchor of its heading, and the heading. */
  readonly id: string
  readonly title: string
  /** Sections stand in ascending order: those below 0 before the history, the others after it. */
  readonly position: number
  /** Makes what stands below the heading; null: the page has no such section. A visitor may have the scope `status` only. */
  readonly show: (visit: Visit, parcel: ExplainedParcel) => Promise<Part>
}

/** Makes sections of the page of a parcel from use cases. */
export type SectionsOf<Options> = (options: Options) => readonly ParcelSection[]

/** Shows the sections of a parcel that stand before its history, and those that stand after it. */
export async function showSections(
  sections: readonly ParcelSection[],
  visit: Visit,
  parcel: ExplainedParcel,
): Promise<Readonly<Record<'before' | 'after', readonly Markup[]>>> {
  const sorted = sections.toSorted((one, other) => one.position - other.position)
  const shown = await Promise.all(sorted.map(async (section) => ({ ...section, part: await section.show(visit, parcel) })))
  const made = (isHere: (position: number) => boolean) =>
    shown.flatMap(({ id, title, position, part }) =>
      part === null || !isHere(position) ? [] : [html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${part}</section>`],
    )
  return { before: made((position) => position < 0), after: made((position) => position >= 0) }
}

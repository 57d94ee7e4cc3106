import { type FilteredCount, type InspectedIdentifier, WATCH_LINES_MAX } from '../../../core/domain/admin/parcel-list.ts'
import { counted, countText } from '../../../core/domain/amounts.ts'
import { DOCUMENTED_STATUSES } from '../../../core/domain/history/observation.ts'
import type { ParcelState } from '../../../core/domain/history/parcel-state.ts'
import type { WatchListReport } from '../../parcels/parcel-commands.ts'
import { type AwaitedParcel, COUNTED_MAX } from '../../parcels/parcel-queries.ts'
import { FILE_BYTES_MAX } from '../form.ts'
import { type Address, html, link, type Markup, markup, type Part, withQuery } from '../html.ts'
import { renderPage, type Visit } from '../layout.ts'
import { actionButton, headline, icon, type SentAgain, sentAgainNote, stateMark, table } from '../parts.ts'
import { relativeTime, timeInTable } from '../times.ts'

type Stopped = NonNullable<ParcelState['stopped']>

interface ParcelFilters {
  readonly text: string
  /** The number of an order, which is the text then. Null: the text is the beginning of an identifier. */
  readonly reference: string | null
  readonly status: string
  readonly stopped: Stopped | null
}

interface ParcelListing {
  readonly filters: ParcelFilters
  /** Null: no identifier can begin with the text that was searched for. */
  readonly found: { readonly parcels: readonly AwaitedParcel[]; readonly next: string | null; readonly counted: FilteredCount } | null
  /** Where the parcels of the order are shown that has the text as its number; null: none has it, or they are shown here. */
  readonly ofOrder: Address | null
  readonly said: WatchSaid
}

/** Why the relay no longer asks the carrier about a parcel, in words that follow "ended: ". */
export const STOPPED_BECAUSE: Readonly<Record<Stopped, string>> = {
  delivered: 'delivered',
  stale: 'no news for a long time',
  unknown: 'the carrier does not know it',
  unwatched: 'somebody stopped them',
}

const IDENTIFIER = /^[A-Z0-9]{4,40}$/

/** Makes the page that lists all parcels, or those that match the filters. By default, they are sorted by their next check. */
export function parcelListPage(visit: Visit, { filters, found, ofOrder, said }: ParcelListing): string {
  const { person, to } = visit
  const { text, reference, status, stopped } = filters
  const parcels = found?.parcels ?? []
  const next = found?.next ?? null
  const main = html`${headline({ title: 'Parcels', lead: leadOf(found, filters) })}
${searchForm(visit, filters)}
${person.scope === 'admin' ? html`<p>${link(to`/watchdogs`, 'Watchdogs: parcels that are stalled')}</p>` : null}
${ofOrder === null ? null : html`<p>${link(ofOrder, `The parcels of the order ${text}`)}</p>`}
${parcels.length === 0 ? nothingFound(visit, filters) : rowsOf(visit, parcels)}
${next === null ? null : html`<p class="more">${link(withQuery(to`/parcels`, { ...(reference === null ? { query: text } : { reference }), status, stopped, cursor: next }), 'Next page')}</p>`}
${person.scope === 'admin' ? watchForm(visit, said, parcels.length === 0 && !isFiltered(filters)) : null}`
  return renderPage(visit, 'parcels', 'Parcels', main)
}

function isFiltered({ text, status, stopped }: ParcelFilters): boolean {
  return text !== '' || status !== '' || stopped !== null
}

/** Says what the list shows, how many there are, and in which order. */
function leadOf(found: ParcelListing['found'], filters: ParcelFilters): string {
  const here = found?.parcels.length ?? 0
  if (found !== null && here > 0) {
    const { status, stopped, text, reference } = filters
    const what = [
      reference !== null ? ` of the order ${text}` : text === '' ? '' : ` with an identifier that begins with ${text}`,
      status === '' ? '' : ` with the latest status ${status}`,
      stopped === null ? '' : ` whose checks have ended (${STOPPED_BECAUSE[stopped]})`,
    ].join('')
    const order =
      text !== ''
        ? reference === null
          ? 'sorted by identifier'
          : 'the ones known longest first'
        : stopped !== null
          ? 'the ones known longest first'
          : 'the next check first, those without checks last'
    return `${amountOf(found.counted)}${what}, ${order}. ${countText(here)} on this page.`
  }
  if (found?.counted.more === true || (found?.next ?? null) !== null) return 'None on this page; there may be more on the next.'
  if (filters.reference !== null)
    return filters.status === '' && filters.stopped === null
      ? `No parcel belongs to the order ${filters.text}.`
      : `No parcel of the order ${filters.text} matches the filters.`
  if (filters.text !== '') return `No parcel is known by ${filters.text}, and no order.`
  return isFiltered(filters) ? 'No parcel matches the filters.' : 'None yet.'
}

function amountOf({ count, more }: FilteredCount): string {
  if (!more) return counted(count, 'parcel', 'parcels')
  if (count === COUNTED_MAX) return `More than ${countText(count)} parcels`
  return `At least ${counted(count, 'parcel', 'parcels')} (only ${countText(COUNTED_MAX)} were looked at)`
}

function nothingFound({ to, person }: Visit, filters: ParcelFilters): Markup {
  const identifier = filters.text.toUpperCase()
  if (person.scope === 'admin' && IDENTIFIER.test(identifier)) {
    return html`<div class="empty"><h2>The relay does not know this parcel</h2>
<p>If the number is right, the carrier may know it. Asking costs a call for each language, and the parcel is watched from then on.</p>
${actionButton(to`/parcels/${identifier}/ask`, `Ask the carrier about ${identifier}`, 'main')}
<p class="dim">A push names only tracking ids. Until a poll brings the tracking number, search for the tracking id.</p></div>`
  }
  if (isFiltered(filters)) return html`<div class="empty"><h2>Nothing found</h2><p>${link(to`/parcels`, 'Show all parcels')}</p></div>`
  return html`<div class="empty"><h2>Parcels come by themselves</h2><p>Each push brings its parcel, and so does each app that asks for one. For parcels that are already on their way, enter a list.</p></div>`
}

function searchForm({ to }: Visit, { text, status, stopped }: ParcelFilters): Markup {
  const chosen = (isChosen: boolean) => (isChosen ? markup(' selected') : null)
  const statuses = [...new Set([...DOCUMENTED_STATUSES, ...(status === '' ? [] : [status])])]
  return html`<form class="filters" role="search" action="${to`/parcels`.path}" aria-label="Parcels">
<div><label for="q">Tracking number or id, or how it begins, or the number of an order</label><input id="q" name="query" type="search" value="${text}" spellcheck="false" autocomplete="off" autocapitalize="characters"></div>
<div><label for="s">Latest status</label><select id="s" name="status"><option value="">any</option>${statuses.map((one) => html`<option value="${one}"${chosen(one === status)}>${one}</option>`)}</select></div>
<div><label for="w">Checks</label><select id="w" name="stopped"><option value="">any: next check first</option>${Object.entries(
    STOPPED_BECAUSE,
  ).map(([reason, because]) => html`<option value="${reason}"${chosen(reason === stopped)}>ended: ${because}</option>`)}</select></div>
<div><button class="btn" type="submit">Show</button></div>
</form>`
}

function rowsOf({ to, nowMs }: Visit, parcels: readonly AwaitedParcel[]): Markup {
  const hasOrders = parcels.some(({ order }) => order.reference !== null)
  const referenceOf = ({ order: { reference } }: AwaitedParcel) =>
    reference === null ? null : link(withQuery(to`/parcels`, { reference }), reference)
  const linkTo = (value: string) => link(to`/parcels/${value}`, value, markup(' class="id"'))
  return table({
    label: 'Parcels',
    columns: [
      'Parcel',
      ...(hasOrders ? ['Order'] : []),
      'Latest status',
      { time: 'Happened' },
      { number: 'Entries' },
      'Carrier last told',
      'Next check',
    ],
    rows: parcels.map((parcel) => {
      const { state, identifiers } = parcel
      return [
        nameOf(linkTo, identifiers),
        ...(hasOrders ? [referenceOf(parcel)] : []),
        state.latest === null ? stateMark('none', 'nothing known') : state.latest.status,
        state.latest === null ? null : timeInTable(state.latest.atMs, nowMs),
        state.entryCount,
        state.lastSeenAtMs === null ? 'never' : relativeTime(state.lastSeenAtMs, nowMs),
        nextCheck(parcel, nowMs),
      ]
    }),
  })
}

/** Returns the identifier that pages show as a parcel's name: its tracking number or, until that is known, its first tracking id. */
export function mainIdentifier(identifiers: readonly InspectedIdentifier[]): string {
  return (identifiers.find(({ isTrackingId }) => !isTrackingId) ?? identifiers[0])?.value ?? ''
}

function nameOf(linkTo: (value: string) => Markup, identifiers: readonly InspectedIdentifier[]): Part {
  const name = mainIdentifier(identifiers)
  const others = identifiers.filter(({ value }) => value !== name)
  const [first] = others
  const hasNumber = identifiers.some(({ isTrackingId }) => !isTrackingId)
  return html`${linkTo(name)}${first === undefined ? null : html`<small class="id">${first.value}</small>`}${
    others.length > 1 ? html`<small>and ${others.length - 1} more</small>` : null
  }${hasNumber ? null : html`<small>tracking number not known yet</small>`}`
}

/** Says when the next check is due. A check whose time has come is "due now": it may have to wait for other checks. */
export function dueText(atMs: number, nowMs: number, { waitsForCarrier }: Pick<AwaitedParcel, 'waitsForCarrier'>): Part {
  if (!waitsForCarrier) return atMs <= nowMs ? 'due now' : relativeTime(atMs, nowMs)
  return html`when the carrier answers again${atMs <= nowMs ? null : html`, ${relativeTime(atMs, nowMs)} at the earliest`}`
}

function nextCheck(parcel: AwaitedParcel, nowMs: number): Part {
  const { nextPollAtMs, stopped, failures } = parcel.state
  if (nextPollAtMs !== null)
    return html`${dueText(nextPollAtMs, nowMs, parcel)}${failures === 0 ? null : html`<small>after ${counted(failures, 'failed check', 'failed checks')}</small>`}`
  return stopped === null ? 'none' : html`ended<small>${STOPPED_BECAUSE[stopped]}</small>`
}

/** The result of watching a list, for the page to show. Null: nobody sent a list. */
export type WatchSaid =
  | {
      readonly kind: 'watched'
      readonly lines: readonly string[]
      readonly report: WatchListReport
      /** Whether the lines were typed. The form then holds those that were wrong, to be corrected. */
      readonly isTyped: boolean
    }
  | SentAgain
  | null

const WRONG_SHOWN_MAX = 20
const LINE_CHARS_SHOWN = 80
/** The longest name or number of a column, in characters. The API has the same limit. */
export const COLUMN_LENGTH_MAX = 200

/** Makes the form to watch parcels, with the result of the last list. `isFirst`: no parcel is known yet, so the form is open. */
function watchForm({ to, nowMs }: Visit, said: WatchSaid, isFirst: boolean): Markup {
  const open = said !== null || isFirst ? markup(' open') : null
  return html`<details class="plain" id="watch"${open}><summary>Watch parcels</summary>
${said === null ? null : saidOf(said, nowMs)}
<form class="form" method="post" action="${to`/parcels`.path}" enctype="multipart/form-data">
<div class="field"><label for="ids">Tracking numbers or ids, one a line</label><textarea class="code" id="ids" name="identifiers" rows="4" spellcheck="false" aria-describedby="ids-hint">${wrongLines(said)}</textarea><small id="ids-hint">The relay asks the carrier about each within a minute, and tells webhooks what is new from then on. The API takes larger files: <code>POST /relay/parcels/watch</code>.</small></div>
<div class="field"><label for="file">Or a file</label><input id="file" name="file" type="file" accept=".csv,.ndjson,.txt" aria-describedby="file-hint"><small id="file-hint">CSV with a column <code>trackingNumber</code>, one identifier a line, or <code>.ndjson</code> with one JSON value a line; at most ${countText(WATCH_LINES_MAX)} lines and ${FILE_BYTES_MAX / (1024 * 1024)} MiB.</small></div>
<div class="field"><label for="column">Column of the file</label><input id="column" name="column" autocomplete="off" spellcheck="false" maxlength="${COLUMN_LENGTH_MAX}" aria-describedby="column-hint"><small id="column-hint">Its name or number. Needed only if no column is named <code>identifier</code>, <code>trackingNumber</code> or <code>trackingId</code>.</small></div>
<p><button class="btn" type="submit">Watch these parcels</button></p>
</form></details>`
}

/** Returns the typed lines that were wrong. The first line break in a text area is not shown. */
function wrongLines(said: WatchSaid): string {
  if (said?.kind !== 'watched' || !said.isTyped) return ''
  return ['', ...said.report.errors.map(({ line }) => said.lines[line - 1] ?? '')].join('\n')
}

function saidOf(said: NonNullable<WatchSaid>, nowMs: number): Markup {
  if (said.kind === 'again') return sentAgainNote(said, nowMs)
  const { watched, created, failed, errors } = said.report
  const { lines } = said
  const wrong = errors.slice(0, WRONG_SHOWN_MAX)
  const title =
    watched === 0
      ? 'No parcel is watched.'
      : `${counted(watched, 'parcel is', 'parcels are')} watched, ${created === 0 ? 'none' : countText(created)} new.`
  const isGood = failed === 0
  return html`<div class="note ${isGood ? 'ok' : 'warn'}" role="${isGood ? 'status' : 'alert'}">${isGood ? icon('ok', 'ok') : null} <strong>${title}</strong>${
    isGood
      ? null
      : html` ${counted(failed, 'line holds', 'lines hold')} no identifier:
<ul>${wrong.map(({ line, reason }) => html`<li>Line ${line}: <code>${(lines[line - 1] ?? '').slice(0, LINE_CHARS_SHOWN)}</code> ${reason}</li>`)}</ul>${failed > wrong.length ? html`<p>And ${countText(failed - wrong.length)} more.</p>` : null}`
  }</div>`
}

import { WATCH_LINES_MAX } from '../../../core/domain/admin/watch-list.ts'
import { counted, countText } from '../../../core/domain/amounts.ts'
import type { WatchListReport } from '../../../core/flow/admin/parcels/import-watches.ts'
import { FILE_BYTES_MAX } from '../form.ts'
import { html, type Markup, markup } from '../html.ts'
import type { Visit } from '../page-route.ts'
import { icon, type SentAgain, sentAgainNote } from '../parts.ts'

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
export function watchForm({ to, nowMs }: Visit, said: WatchSaid, isFirst: boolean): Markup {
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

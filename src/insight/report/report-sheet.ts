import { charactersOf, html, type Markup, markup, type Part } from '../../console/portal/html.ts'
import { countText } from '../../core/domain/amounts.ts'
import type { ReportAnswer } from './report.routes.ts'
import type { CountName } from './report.rules.ts'
import { stackedColumns } from './report-charts.ts'
import {
  changesText,
  chartsOf,
  countMeaning,
  countName,
  entriesOf,
  evidenceNote,
  latenessText,
  monthTitle,
  outageText,
  shareText,
  stateSentence,
} from './report-words.ts'

// The report as a file that prints on two A4 sheets: its lists are cut to what fits, and say what they leave out.

const OUTAGES_SHOWN = 4
const CORRECTIONS_SHOWN = 2
/** The ids of a row take about this many characters. */
const ID_CHARS = 60

const STYLE = markup(`<style>
@page { size: A4; margin: 12mm 14mm }
* { box-sizing: border-box }
body { font: 9.5pt/1.4 system-ui, sans-serif; color: #1c2530; max-width: 182mm; margin: 8mm auto; padding: 0 4mm }
h1 { font-size: 17pt; margin: 0 }
h2 { font-size: 11.5pt; margin: 4.5mm 0 1.5mm }
p { margin: 0 0 1.5mm }
.dim, small { color: #5a6672 }
.figures { display: flex; gap: 4mm; margin: 4mm 0 2mm }
.figures div { flex: 1; border: 1px solid #cfd6dd; border-radius: 2mm; padding: 2mm 3mm }
.figures b { display: block; font-size: 15pt; line-height: 1.2 }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: 0.8mm 2mm 0.8mm 0; border-bottom: 1px solid #e2e7ec }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; padding-right: 4mm }
code { font: 8.5pt ui-monospace, monospace; overflow-wrap: anywhere }
svg { max-width: 100% }
td:first-child { white-space: nowrap }
.legend { margin: 0 }
.legend span { margin-right: 4mm }
a { color: inherit }
section + section { break-before: page }
@media print { body { margin: 0; max-width: none; padding: 0 } section { break-inside: avoid } }
@media screen { section + section { border-top: 1px dashed #cfd6dd; margin-top: 8mm; padding-top: 6mm } }
</style>`)

export interface SheetOptions {
  /** The address of the portal, for links to evidence, without a slash at its end; null: none is known. */
  readonly portal: string | null
  readonly nowMs: number
}

/** Writes a report as an HTML file with its own style, and without script. */
export function renderSheet(report: ReportAnswer, options: SheetOptions): string {
  const { month, zone } = report
  return charactersOf(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Carrier report ${month}</title>
${STYLE}
</head>
<body>
<section>
<h1>Carrier report, ${monthTitle(month)}</h1>
<p class="dim">${stateSentence(report)} Days in ${zone}; counted since ${report.countedFrom}. Made on ${new Date(options.nowMs).toISOString().slice(0, 16)}Z.</p>
${pushSheet(report, options)}
</section>
<section>
${pollSheet(report, options)}
${proofSheet(report, options)}
</section>
</body>
</html>
`)
}

function pushSheet(report: ReportAnswer, { nowMs }: SheetOptions): Markup {
  const { counts, lateness } = report
  const all = entriesOf(counts)
  const charts = chartsOf(report)
  return html`<div class="figures">
<div><b>${countText(counts.lost)}</b>lost <small>${shareText(counts.lost, all)} of ${countText(all)} entries</small></div>
<div><b>${countText(counts.late)}</b>late <small>${shareText(counts.late, counts.pushed)} of pushed</small></div>
<div><b>${lateness === null ? '—' : latenessText(lateness.p95Ms)}</b>p95 <small>from event to push</small></div>
<div><b>${shareText(counts.answered, counts.answered + counts.failed + counts.limited)}</b>answered <small>of questions</small></div>
</div>
<p>Outages: ${outageText(report, nowMs)}.</p>
<h2>${charts.entries.title}</h2>
${stackedColumns(charts.entries)}
<h2>${charts.lateness.title}</h2>
${stackedColumns(charts.lateness)}
<p>${lateness === null ? 'No push brought an entry.' : `p50 ${latenessText(lateness.p50Ms)}, p95 ${latenessText(lateness.p95Ms)}, p99 ${latenessText(lateness.p99Ms)} (to 5 %).`}</p>
<h2>Pushes</h2>
${countTable(report, ['pushed', 'late', 'lost', 'repeated', 'reworded', 'outOfOrder', 'quarantined'], { late: counts.pushed, lost: all })}
<h2>Apart: not the carrier’s, or not certain to be</h2>
${countTable(report, ['badSignature', 'notTaken'], {})}`
}

function pollSheet(report: ReportAnswer, { nowMs }: SheetOptions): Markup {
  const { counts, outages } = report
  const asked = counts.answered + counts.failed + counts.limited
  const { questions } = chartsOf(report)
  return html`<h2>${questions.title}</h2>
${stackedColumns({ ...questions, height: 100 })}
${countTable(report, ['answered', 'slow', 'failed', 'limited', 'disagreed'], { answered: asked, slow: counts.answered, failed: asked, limited: asked })}
<h2>Outages: ${outageText(report, nowMs)}</h2>
${rowsOf(
  outages.slice(-OUTAGES_SHOWN).map(({ from, until }) => [`${short(from)} to ${until === null ? 'now: it lasts' : short(until)}`]),
  outages.length - OUTAGES_SHOWN,
)}`
}

function proofSheet({ evidence, corrections }: ReportAnswer, { portal }: SheetOptions): Markup {
  const linked = (of: 'inbox' | 'parcels', id: string): Part =>
    portal === null ? html`<code>${id}</code> ` : html`<a href="${`${portal}/${of}/${encodeURIComponent(id)}`}"><code>${id}</code></a> `
  const proofs = evidence.filter(({ ids, removed, unkept }) => ids.length + removed + unkept > 0)
  return html`<h2>Corrections</h2>
${rowsOf(
  corrections.slice(-CORRECTIONS_SHOWN).map(({ foundOn, changes }) => [foundOn, changesText(changes)]),
  corrections.length - CORRECTIONS_SHOWN,
)}
<h2>Evidence</h2>
<p class="dim">Lost and disagreed name parcels, the others pushes in the inbox. The report as JSON names up to 50 of each.</p>
${rowsOf(
  proofs.map(({ name, of, ids, more, removed, unkept }) => {
    const shown = ids.filter((_, at) => ids.slice(0, at).join('  ').length < ID_CHARS)
    const left = { more: more + ids.length - shown.length, removed, unkept }
    return [countName(name), html`${shown.map((id) => linked(of, id))}<small>${evidenceNote(left)}</small>`]
  }),
  0,
)}`
}

function countTable(report: ReportAnswer, names: readonly CountName[], of: Partial<Readonly<Record<CountName, number>>>): Markup {
  return html`<table><tbody>${names.map((name) => {
    const [count, all] = [report.counts[name], of[name]]
    return html`<tr><th scope="row">${countName(name)}</th><td class="n">${countText(count)}</td><td class="n">${all === undefined ? null : shareText(count, all)}</td><td class="dim">${countMeaning(name, report)}</td></tr>`
  })}</tbody></table>`
}

/** `left`: how many rows are not shown. */
function rowsOf(rows: readonly (readonly Part[])[], left: number): Markup {
  if (rows.length === 0) return html`<p>None.</p>`
  const cells = rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)
  return html`<table><tbody>${cells}</tbody></table>${left > 0 ? html`<p class="dim">${countText(left)} earlier ones are not shown.</p>` : null}`
}

function short(instant: string): string {
  return `${instant.slice(0, 16).replace('T', ' ')}Z`
}

import { html, link, type Markup, type Part, withQuery } from '../../console/portal/html.ts'
import { getPage, type PageRoute, renderPage, type Visit } from '../../console/portal/layout.ts'
import { asOfLine, crumbs, headline, table } from '../../console/portal/parts.ts'
import { timeInTable } from '../../console/portal/times.ts'
import { countText } from '../../core/domain/amounts.ts'
import type { UseCases } from '../../core/http/use-cases.ts'
import type { ReportAnswer } from './report.routes.ts'
import { COUNTS } from './report.rules.ts'
import { stackedColumns } from './report-charts.ts'
import { renderSheet } from './report-sheet.ts'
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
  reportCsv,
  shareText,
  stateSentence,
} from './report-words.ts'

/** Makes the page with the carrier's report of a month, and the files of it. */
export function reportPages({ reports }: Pick<UseCases, 'reports'>): readonly PageRoute[] {
  const read = (month: string) => reports.read(month === '' ? null : month)
  return [
    getPage('/report', async (visit) => ({ page: reportPage(visit, await read(visit.query('month'))) })),
    getPage('/report/:month/html', async (visit) => {
      const report = await read(visit.param('month'))
      const { nowMs, publicOrigin, to } = visit
      const portal = publicOrigin === null ? null : `${publicOrigin}${to`/`.path.replace(/\/$/, '')}`
      return { file: Buffer.from(renderSheet(report, { portal, nowMs })), name: `carrier-report-${report.month}.html` }
    }),
    getPage('/report/:month/csv', async (visit) => {
      const report = await read(visit.param('month'))
      return { file: Buffer.from(reportCsv(report)), name: `carrier-report-${report.month}.csv` }
    }),
  ]
}

function reportPage(visit: Visit, report: ReportAnswer): string {
  const { to, nowMs } = visit
  const { month, counts, lateness, outages, corrections } = report
  const all = entriesOf(counts)
  const lead = html`${countText(counts.lost)} of ${countText(all)} entries lost (${shareText(counts.lost, all)}), ${countText(counts.late)} late. ${lateness === null ? '' : `Half of the pushes came within ${latenessText(lateness.p50Ms)}, 95 % within ${latenessText(lateness.p95Ms)}, 99 % within ${latenessText(lateness.p99Ms)}. `}Outages: ${outageText(report, nowMs)}.`
  const main = html`${crumbs([to`/carrier`, 'Carrier'])}
${headline({ title: `Report, ${monthTitle(month)}`, lead, asOf: asOfLine(nowMs, withQuery(to`/report`, { month })) })}
<form class="filters" action="${to`/report`.path}" aria-label="Month"><div><label for="month">Month</label><input id="month" name="month" type="month" value="${month}" min="${report.countedFrom.slice(0, 7)}" required></div><div><button class="btn" type="submit">Show</button></div></form>
<p><span class="verbatim">${stateSentence(report)} Days are those of ${report.zone}, counted since ${report.countedFrom}.</span> ${link(to`/report/${month}/html`, 'Download to print (HTML)')} · ${link(to`/report/${month}/csv`, 'Download as CSV')}</p>
${Object.values(chartsOf(report)).map(
  (chart) => html`<h2>${chart.title}</h2>
${stackedColumns(chart)}
`,
)}<h2>Counts and evidence</h2>
${countTable(visit, report)}
<h2>Outages</h2>
${
  outages.length === 0
    ? html`<p>None.</p>`
    : table({
        label: 'Outages',
        columns: [{ time: 'From' }, { time: 'Until' }],
        rows: outages.map(({ from, until }) => [
          timeInTable(Date.parse(from), nowMs),
          until === null ? 'it lasts' : timeInTable(Date.parse(until), nowMs),
        ]),
      })
}
<h2>Corrections</h2>
${
  corrections.length === 0
    ? html`<p>None.</p>`
    : table({
        label: 'Corrections',
        columns: ['Found on', 'Changes'],
        rows: corrections.map(({ foundOn, changes }) => [foundOn, changesText(changes)]),
      })
}`
  return renderPage(visit, 'carrier', `Report, ${monthTitle(month)}`, main)
}

function countTable({ to }: Visit, report: ReportAnswer): Markup {
  const linked = (of: 'inbox' | 'parcels', id: string): Part =>
    html`${of === 'inbox' ? link(to`/inbox/${id}`, id) : link(to`/parcels/${id}`, id)} `
  return table({
    label: 'Counts and evidence',
    kind: 'cards tight',
    columns: ['What', { number: 'Count' }, 'Meaning', 'Evidence'],
    rows: COUNTS.map((name) => {
      const proof = report.evidence.find((one) => one.name === name)
      const shown =
        proof === undefined ? null : html`${proof.ids.map((id) => linked(proof.of, id))}<span class="dim">${evidenceNote(proof)}</span>`
      return [countName(name), countText(report.counts[name]), countMeaning(name, report), shown]
    }),
  })
}

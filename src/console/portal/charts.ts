import { type Counts, totalOf } from '../../core/domain/admin/tally.ts'
import { countText } from '../../core/domain/amounts.ts'
import type { Traffic, TrafficSeries } from '../overview/overview.ts'
import { html, type Markup, type Part } from './html.ts'
import { table } from './parts.ts'
import { hourBegun, timeInTable } from './times.ts'

// Small charts as SVG, which the server draws without script. Each series is one path. The style sheet sets size and colours, because the
// content security policy forbids style attributes.

/** The widths of a bar and of the gap to the next one, and the height of the chart, in units of the SVG. */
const SIZES = { spark: { width: 4, gap: 1, height: 24 }, strip: { width: 8, gap: 2, height: 40 } } as const

export interface Bars {
  readonly values: readonly number[]
  /** A second series, stacked on top of the first. */
  readonly over?: readonly number[]
  readonly overKind?: 'warn' | 'bad'
  /** Says what the chart shows, for people who cannot see it. */
  readonly summary: string
  readonly size?: keyof typeof SIZES
}

/** The highest bar is as high as the chart. */
export function bars({ values, over = values.map(() => 0), overKind = 'bad', summary, size = 'spark' }: Bars): Markup {
  const { width, gap, height } = SIZES[size]
  const highest = Math.max(1, ...values.map((value, at) => value + (over[at] ?? 0)))
  const high = (value: number) => Math.round((value / highest) * height * 10) / 10
  const bar = (value: number, from: number, at: number) =>
    value <= 0 ? '' : `M${at * (width + gap)} ${height - high(from)}v-${Math.max(0.8, high(value))}h${width}V${height - high(from)}z`
  const all = values.length * (width + gap) - gap
  const path = values.map((value, at) => bar(value, 0, at)).join('')
  const onTop = over.map((value, at) => bar(value, values[at] ?? 0, at)).join('')
  return html`<svg class="${size}" role="img" aria-label="${summary}" viewBox="0 0 ${all} ${height}" preserveAspectRatio="none"><path class="c-base" d="M0 ${height - 0.25}H${all}"/><path class="c-bar" d="${path}"/>${onTop === '' ? null : html`<path class="c-${overKind}" d="${onTop}"/>`}</svg>`
}

export function axis(names: readonly Part[]): Markup {
  return html`<div class="axis" aria-hidden="true">${names.map((name) => html`<span>${name}</span>`)}</div>`
}

/** Draws one horizontal bar of up to five parts. `of`: the count that fills the whole bar. A line marks `share`, from 0 to 1. */
export function budgetBar(
  parts: readonly number[],
  { of, share, summary }: { readonly of: number; readonly share: number; readonly summary: string },
): Markup {
  const long = (count: number) => Math.round((count / Math.max(1, of)) * 10_000) / 10
  const from = (part: number) => long(parts.slice(0, part).reduce((sum, count) => sum + count, 0))
  return html`<svg class="budget" role="img" aria-label="${summary}" viewBox="0 -3 1000 18" preserveAspectRatio="none"><rect class="c-rest" width="1000" height="12"/>${parts.map((count, part) => (count === 0 ? null : html`<rect class="c-p${part}" x="${from(part)}" width="${Math.max(1, long(count))}" height="12"/>`))}<path class="c-mark" d="M${Math.round(share * 1000)} -3V15"/></svg>`
}

/** Draws a small square in the colour of a part of `budgetBar`, to put next to the part's name. */
export function swatch(part: number): Markup {
  return html`<svg class="sw" viewBox="0 0 10 10" aria-hidden="true"><rect class="c-p${part}" width="10" height="10"/></svg>`
}

/** The outcomes of pushes that were taken. The tallies and `relay_pushes_received_total` count the refused ones too. */
export const TAKEN = ['recorded', 'duplicate', 'quarantined', 'expired'] as const

type Count = (counts: Counts) => number

const takenOf: Count = (counts) => totalOf(counts, TAKEN)
/** Anybody can send what other outcomes stand for, so they show no loss. */
const refusedOf: Count = (counts) => totalOf(counts, ['storage_unavailable'])
const acceptedOf: Count = (counts) => counts.accepted ?? 0
const failedOf: Count = (counts) => counts.failed ?? 0

/** Shows the pushes, missed pushes, polls and attempts of the last 24 hours and 30 days, as charts and in numbers. */
export function trafficSection({ hours, days }: Traffic): Markup {
  const row = (name: Part, kind: 'pushes' | 'missed' | 'polls' | 'attempts', count: Count, over?: Count) => {
    const drawn = (series: TrafficSeries, span: string) => {
      const counts = series[kind].map((one) => count(one))
      return bars({
        values: counts,
        ...(over === undefined ? {} : { over: series[kind].map((one) => over(one)) }),
        // Missed pushes have the same colour as on the carrier's page.
        ...(kind === 'missed' ? { values: counts.map(() => 0), over: counts, overKind: 'warn' as const } : {}),
        summary: `${kind}, ${span}: ${countText(sumOf(series[kind], count))}${over === undefined ? '' : `, ${kind === 'pushes' ? 'refused' : 'failed'}: ${countText(sumOf(series[kind], over))}`}`,
      })
    }
    const sum = (series: TrafficSeries) => countText(sumOf(series[kind], count))
    return [name, drawn(hours, 'last 24 hours'), sum(hours), drawn(days, 'last 30 days'), sum(days)]
  }
  const names = ({ fromMs }: TrafficSeries, begun: (atMs: number) => Markup, last: string) =>
    axis([...[0, 1, 2].map((third) => begun(fromMs[Math.floor((fromMs.length * third) / 3)] ?? 0)), last])
  // Days are counted in UTC. In another zone they begin at another hour, so the axis shows the hour, too.
  const dayBegun = (atMs: number) => timeInTable(atMs, days.fromMs.at(-1) ?? atMs)
  return html`<h2 id="traffic">Traffic</h2>
<p>Counts are written every 10 seconds; while the store cannot be written they stand still, and are whole again afterwards. If the process is killed, the counts of the last seconds are lost, but no push that was answered with 200.</p>
${table({
  label: 'Traffic',
  kind: 'traffic cards',
  columns: [{ hidden: 'What' }, 'Last 24 hours', { number: 'Sum' }, 'Last 30 days', { number: 'Sum' }],
  rows: [
    row(html`Pushes taken <small>red: authentic, answered with 503</small>`, 'pushes', takenOf, refusedOf),
    row(html`Missed pushes <small>found by polls</small>`, 'missed', totalOf),
    row('Polls', 'polls', totalOf),
    row(html`Deliveries <small>red: failed attempts</small>`, 'attempts', acceptedOf, failedOf),
    [html`<span class="hide">Time</span>`, names(hours, hourBegun, 'now'), '', names(days, dayBegun, 'now'), ''],
  ],
})}
<details class="plain"><summary>Show the numbers</summary><div class="scroll" tabindex="0" role="region" aria-label="Traffic by hour">${table(
    {
      label: 'Traffic by hour',
      columns: [
        { time: 'Hour' },
        { number: 'Pushes taken' },
        { number: 'Refused (503)' },
        { number: 'Missed' },
        { number: 'Polls' },
        { number: 'Delivered' },
        { number: 'Failed' },
      ],
      rows: hours.fromMs.map((fromMs, at) => {
        const numbers = [
          takenOf(hours.pushes[at] ?? {}),
          refusedOf(hours.pushes[at] ?? {}),
          totalOf(hours.missed[at] ?? {}),
          totalOf(hours.polls[at] ?? {}),
          acceptedOf(hours.attempts[at] ?? {}),
          failedOf(hours.attempts[at] ?? {}),
        ]
        return [hourBegun(fromMs), ...numbers.map(countText)]
      }),
    },
  )}</div></details>`
}

function sumOf(series: readonly Counts[], count: Count): number {
  return series.reduce((sum, counts) => sum + count(counts), 0)
}

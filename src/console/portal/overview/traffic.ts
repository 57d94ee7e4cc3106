import { type Counts, totalOf } from '../../../core/domain/admin/tally.ts'
import { countText } from '../../../core/domain/amounts.ts'
import type { Traffic, TrafficSeries } from '../../overview/traffic.ts'
import { axis, bars } from '../charts.ts'
import { html, type Markup, type Part } from '../html.ts'
import { table } from '../parts.ts'
import { hourBegun, timeInTable } from '../times.ts'

/** The outcomes of pushes with a valid signature. */
export const AUTHENTIC = ['recorded', 'duplicate', 'quarantined', 'expired'] as const

type Count = (counts: Counts) => number

const pushesOf: Count = (counts) => totalOf(counts, AUTHENTIC)
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
        summary: `${kind}, ${span}: ${countText(sumOf(series[kind], count))}${over === undefined ? '' : `, failed: ${countText(sumOf(series[kind], over))}`}`,
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
<p>Counts are written every 10 seconds. If the process is killed, the counts of the last seconds are lost, but no push that was answered with 200.</p>
${table({
  label: 'Traffic',
  kind: 'traffic cards',
  columns: [
    { title: 'What', isHidden: true },
    { title: 'Last 24 hours' },
    { title: 'Sum', isNumber: true },
    { title: 'Last 30 days' },
    { title: 'Sum', isNumber: true },
  ],
  rows: [
    row('Pushes received', 'pushes', pushesOf),
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
        { title: 'Hour', isTime: true },
        { title: 'Pushes', isNumber: true },
        { title: 'Missed', isNumber: true },
        { title: 'Polls', isNumber: true },
        { title: 'Delivered', isNumber: true },
        { title: 'Failed', isNumber: true },
      ],
      rows: hours.fromMs.map((fromMs, at) => {
        const numbers = [
          pushesOf(hours.pushes[at] ?? {}),
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

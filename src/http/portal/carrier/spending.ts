import { type Counts, LATENESS_CLASSES, sumOf, totalOf } from '../../../domain/admin/tally.ts'
import { countText } from '../../../domain/amounts.ts'
import type { Traffic } from '../../../flow/admin/overview/traffic.ts'
import { axis, bars, budgetBar, swatch } from '../charts.ts'
import { html, type Markup } from '../html.ts'
import { AUTHENTIC } from '../overview/traffic.ts'
import { table } from '../parts.ts'
import { hourBegun, timeInSentence } from '../times.ts'

const DAY_MS = 24 * 3_600_000
const APPS_SHOWN = 5

/** Shows what today's calls to the carrier were made for: a bar, and a table below it. `calls`: counts by purpose, such as `schedule`. */
export function spendingSection(calls: Counts, callsPerDay: number, nowMs: number): Markup {
  const apps = Object.entries(calls)
    .filter(([name]) => name.startsWith('app:'))
    .toSorted(([, a], [, b]) => b - a)
  const of = (name: string) => calls[name] ?? 0
  const spenders: readonly (readonly [name: string, count: number, ofThese: string])[] = [
    ['Schedule', of('schedule'), 'scheduled polls'],
    [
      'Apps’ questions',
      apps.reduce((sum, [, count]) => sum + count, 0),
      apps.length === 0
        ? 'questions that the store could not answer'
        : apps
            .slice(0, APPS_SHOWN)
            .map(([name, count]) => `${name.slice('app:'.length)} ${countText(count)}`)
            .join(' · '),
    ],
    ['Further languages', of('language'), 'texts missing from entries'],
    ['Operators', of('operator'), 'refresh'],
    ['Token and repeats', of('token') + of('repeat'), `${countText(of('token'))} for tokens, ${countText(of('repeat'))} repeats`],
  ]
  const all = totalOf(calls)
  const share = (nowMs % DAY_MS) / DAY_MS
  return html`<h2 id="budget">Calls today</h2>
${budgetBar(
  spenders.map(([, count]) => count),
  { of: callsPerDay, share, summary: `${countText(all)} of ${countText(callsPerDay)} calls used` },
)}
<p class="dim">The whole bar is ${countText(callsPerDay)} calls. The line marks the time: ${Math.floor(share * 100)} % of the day is over, which ends at ${timeInSentence(Math.ceil((nowMs + 1) / DAY_MS) * DAY_MS, nowMs)}.</p>
${table({
  label: 'Who spends the calls',
  kind: 'cards tight',
  columns: [{ title: 'For' }, { title: 'Calls', isNumber: true }, { title: 'Share', isNumber: true }, { title: 'Of these' }],
  rows: spenders.map(([name, count, ofThese], part) => [
    html`${swatch(part)}${name}`,
    countText(count),
    `${((100 * count) / Math.max(1, all)).toFixed(1)} %`,
    ofThese,
  ]),
})}`
}

const LATENESS_NAMES: Readonly<Record<string, string>> = {
  '1m': 'within a minute',
  '5m': 'within 5 min',
  '15m': 'within 15 min',
  '1h': 'within an hour',
  '4h': 'within 4 h',
  '1d': 'within a day',
  later: 'later',
}

/** Draws the pushes and the missed pushes of each hour. */
export function pushHours({ hours }: Traffic): Markup {
  const pushes = hours.pushes.map((counts) => totalOf(counts, AUTHENTIC))
  const missed = hours.missed.map((counts) => totalOf(counts))
  const sum = (counts: readonly number[]) => countText(counts.reduce((all, one) => all + one, 0))
  const names = [0, 8, 16].map((at) => hourBegun(hours.fromMs[at] ?? 0))
  return html`<p>Pushes, hour by hour (blue), and entries that only polls found (amber).</p>
${bars({ values: pushes, over: missed, overKind: 'warn', size: 'strip', summary: `Last 24 hours: ${sum(pushes)} pushes, ${sum(missed)} missed` })}
${axis([...names, 'now'])}`
}

/** Shows how long after the scan a poll found each missed push. */
export function latenessTable({ days }: Traffic): Markup {
  const late = sumOf(days.missed.map((counts) => ({ counts })))
  return table({
    label: 'How late missed pushes were found, last 30 days',
    kind: 'cards tight slim',
    columns: [{ title: 'Found by a poll' }, { title: 'Missed pushes, last 30 days', isNumber: true }],
    rows: LATENESS_CLASSES.map((name) => [LATENESS_NAMES[name] ?? name, countText(late[name] ?? 0)]),
  })
}

import { settingText } from '../../console/portal/times.ts'
import { counted, countText, spanText } from '../../core/domain/amounts.ts'
import { beginOfDayMs } from '../../core/domain/calendar.ts'
import type { ReportAnswer } from './report.routes.ts'
import { COUNTS, type CountName, LATENESS_BOUNDS, readMonth } from './report.rules.ts'

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']

/** Names a month such as 2026-10 as people do. */
export function monthTitle(month: string): string {
  const [year = '', at = ''] = month.split('-')
  return `${MONTHS[Number(at) - 1] ?? month} ${year}`
}

/** What each count is called, and what it says; `GRACE` stands for how late a push may be. */
const COUNT_WORDS: Readonly<Record<CountName, readonly [name: string, meaning: string]>> = {
  pushed: ['Pushed', 'entries that a push brought'],
  late: ['Late', 'of these: more than GRACE after the event, or after they had counted as lost'],
  lost: ['Lost', 'entries of known parcels that only polls found'],
  repeated: ['Repeated', 'pushes that said again what a push had said'],
  reworded: ['Reworded', 'pushes that said something else of an entry that a push had brought'],
  outOfOrder: ['Out of order', 'pushes of an entry older than one that was known'],
  quarantined: ['Quarantined', 'signed pushes that are no valid event'],
  disagreed: ['Disagreed', 'histories of which a push and a poll said different things'],
  answered: ['Answered', 'questions that were answered'],
  slow: ['Slow', 'of these: after more than 5 s'],
  failed: ['Failed', 'questions without a usable answer'],
  limited: ['Refused with 429', 'questions that the carrier put off'],
  badSignature: ['Bad signatures', 'requests with a bad signature; anybody can send these'],
  notTaken: ['Not taken', 'pushes that this relay answered with 503'],
}

export function countName(name: CountName): string {
  return COUNT_WORDS[name][0]
}

/** Says what a count means in this report. */
export function countMeaning(name: CountName, { graceMs }: Pick<ReportAnswer, 'graceMs'>): string {
  return COUNT_WORDS[name][1].replace('GRACE', settingText(graceMs))
}

/** Says in a sentence how final the figures are. */
export function stateSentence({ state, closesOn }: Pick<ReportAnswer, 'state' | 'closesOn'>): string {
  if (state === 'running') return `The month is not over. It closes on ${closesOn}.`
  return state === 'open'
    ? `The month is over. Its figures may still change: it closes on ${closesOn}.`
    : `The month closed on ${closesOn}. What changed later is listed under Corrections.`
}

export function latenessText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : spanText(ms)
}

/** A share such as `1.2 %`; `—` of nothing. */
export function shareText(part: number, all: number): string {
  return all <= 0 ? '—' : `${((100 * Math.max(0, part)) / all).toFixed(part > 0 && part / all < 0.01 ? 2 : 1)} %`
}

/** The entries of known parcels, pushed or lost. */
export function entriesOf({ pushed, lost }: ReportAnswer['counts']): number {
  return pushed + lost
}

/** Sums up how long outages lasted within the month. */
export function outageText({ outages, month, zone }: Pick<ReportAnswer, 'outages' | 'month' | 'zone'>, nowMs: number): string {
  const days = readMonth(month)
  if (outages.length === 0 || days === null) return 'none'
  const [beginMs, endMs] = [beginOfDayMs(zone, days.from), beginOfDayMs(zone, days.to)]
  const total = outages.reduce((sum, { from, until }) => {
    const lastedMs = Math.min(until === null ? nowMs : Date.parse(until), endMs) - Math.max(Date.parse(from), beginMs)
    return sum + Math.max(0, lastedMs)
  }, 0)
  return `${counted(outages.length, 'outage', 'outages')}, ${spanText(total)} in all`
}

const [BLUE, AMBER, RED, GREY] = ['#3b7dd8', '#e0a100', '#cc3d3d', '#9aa3ad']

/** The charts of a report, with their titles. */
export function chartsOf({ days, counts, latenessBars }: Pick<ReportAnswer, 'days' | 'counts' | 'latenessBars'>) {
  const names = days.map(({ day }) => String(Number(day.slice(8))))
  const series = (name: string, colour: string, of: (counts: ReportAnswer['counts']) => number) => ({
    name,
    colour,
    values: days.map((day) => Math.max(0, of(day.counts))),
  })
  return {
    entries: {
      title: 'Entries by day',
      summary: `Entries by day: ${countText(counts.pushed)} pushed, of these ${countText(counts.late)} late, and ${countText(counts.lost)} lost`,
      names,
      series: [
        series('on time', BLUE, ({ pushed, late }) => pushed - late),
        series('late', AMBER, ({ late }) => late),
        series('lost', RED, ({ lost }) => lost),
      ],
    },
    lateness: {
      title: 'From event to push',
      summary: 'Pushes by the time from the event to the push',
      names: [...LATENESS_BOUNDS.map(([, name]) => `≤ ${name}`), 'later'],
      series: [{ name: 'pushes', colour: BLUE, values: latenessBars.map(({ count }) => count) }],
    },
    questions: {
      title: 'Questions by day',
      summary: `Questions by day: ${countText(counts.answered)} answered, ${countText(counts.failed)} failed, ${countText(counts.limited)} refused with 429`,
      names,
      series: [
        series('answered', BLUE, ({ answered, slow }) => answered - slow),
        series('slow', AMBER, ({ slow }) => slow),
        series('failed', RED, ({ failed }) => failed),
        series('429', GREY, ({ limited }) => limited),
      ],
    },
  }
}

/** Says which evidence is not shown, and why; '': all is. */
export function evidenceNote({ more, removed, unkept }: Pick<ReportAnswer['evidence'][number], 'more' | 'removed' | 'unkept'>): string {
  return [
    more > 0 ? `${countText(more)} more` : '',
    removed > 0 ? `${countText(removed)} removed by retention or an erasure` : '',
    unkept > 0 ? `${countText(unkept)} not kept (the first 20 of a day are)` : '',
  ]
    .filter((text) => text !== '')
    .join('; ')
}

/** Says in a few words what a correction has changed. */
export function changesText(changes: ReportAnswer['corrections'][number]['changes']): string {
  return COUNTS.flatMap((name) => {
    const by = changes[name] ?? 0
    return by === 0 ? [] : [`${countName(name).toLowerCase()} ${by > 0 ? '+' : '−'}${countText(Math.abs(by))}`]
  }).join(', ')
}

/** Names what proves a count so that it is clear of what: `inbox:8`, `parcel:AB123456789SE`. */
function evidenceText({ of, ids }: ReportAnswer['evidence'][number]): string {
  return ids.map((id) => `${of === 'inbox' ? 'inbox' : 'parcel'}:${id}`).join(' ')
}

/** Writes a report as CSV: what it is of; for each count a line of the month, with what proves it, and a line of each day on which there was something. */
export function reportCsv(report: ReportAnswer): string {
  const lines = [['count', 'day', 'value', 'evidence', 'note']]
  const add = (count: string, day: string, value: string | number, evidence = '', note = '') =>
    lines.push([count, day, String(value), evidence, note])
  for (const name of ['month', 'zone', 'state', 'closesOn', 'countedFrom', 'graceMs'] as const) add(name, '', report[name])
  for (const name of COUNTS) {
    const proof = report.evidence.find((one) => one.name === name)
    add(name, '', report.counts[name], proof && evidenceText(proof), proof && evidenceNote(proof))
    for (const { day, counts } of report.days) if (counts[name] !== 0) add(name, day, counts[name])
  }
  for (const [name, value] of Object.entries(report.lateness ?? {})) add(name, '', value)
  for (const { from, until } of report.outages) add('outage', from, until ?? '', '', until === null ? 'lasts' : '')
  for (const { foundOn, changes } of report.corrections) add('correction', foundOn, '', '', changesText(changes))
  return lines
    .map((cells) => `${cells.map((cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',')}\n`)
    .join('')
}

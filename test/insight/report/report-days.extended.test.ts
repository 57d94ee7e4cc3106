import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../src/core/store/contract.ts'
import type { ReportAnswer } from '../../../src/insight/report/report.routes.ts'
import { COUNTS } from '../../../src/insight/report/report.rules.ts'
import { renderSheet } from '../../../src/insight/report/report-sheet.ts'
import { countName, reportCsv } from '../../../src/insight/report/report-words.ts'
import { dateIn, liveOverDays } from '../../support/insight/report-days.ts'
import { DAY_MS } from '../../support/runner/constants.ts'
import { runsOn } from '../../support/runner/long-form.ts'
import { engines } from '../../support/store/engines.ts'

/** Days of 23, 25 and 23.5 hours, days that begin at one o'clock, and zones that are a day apart. */
const LIVES = [
  [['Europe/Stockholm'], '2026-03-20', '2026-04-18'],
  [['Europe/Stockholm', 'UTC'], '2026-10-14', '2026-11-16'],
  [['America/Santiago', 'Africa/Cairo', 'Australia/Lord_Howe'], '2026-03-25', '2026-05-05'],
  [['Pacific/Kiritimati', 'America/Adak', 'Asia/Kathmandu'], '2026-10-20', '2026-11-20'],
] as const

/** The days from the first of a month until its last, or until one that is earlier. */
function daysOf(month: string, until: string): readonly string[] {
  const first = Date.parse(`${month}-01`)
  const all = Array.from({ length: 31 }, (_, nth) => new Date(first + nth * DAY_MS).toISOString().slice(0, 10))
  return all.filter((day) => day.startsWith(month) && day <= until)
}

function readCsv(text: string) {
  const rows = text
    .trimEnd()
    .split('\n')
    .map((line) =>
      [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,"]*))/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? ''),
    )
  expect(new Set(rows.map((row) => row.length))).toEqual(new Set([5]))
  const countOf = (name: string, day = '') => rows.find(([count, of]) => count === name && of === day)?.[2]
  return {
    countOf,
    days: (name: string) =>
      Object.fromEntries(rows.flatMap(([count, day = '', value]) => (count === name && day !== '' ? [[day, Number(value)]] : []))),
    corrections: Object.fromEntries(rows.flatMap(([count, day = '', , , note]) => (count === 'correction' ? [[day, note]] : []))),
    outages: rows.flatMap(([count, from, until]) => (count === 'outage' ? [[from, until]] : [])),
  }
}

function readSheet(text: string) {
  const cells = [...text.matchAll(/<tr><th scope="row">([^<]*)<\/th><td class="n">([^<]*)<\/td>/g)]
  const counts = new Map(cells.map(([, name = '', count = '']) => [name, Number(count.replaceAll(/\D/g, ''))]))
  // What each column of a chart adds up to, as a share of the highest.
  const charts = [...text.matchAll(/<svg role="img" aria-label="([^"]*)" viewBox="0 0 720 (\d+)"[^>]*>(.*?)<\/svg>/gs)].map(
    ([, label = '', height, inner = '']) => {
      const columns = new Map<number, number>()
      for (const [, path = ''] of inner.matchAll(/<path fill="[^"]*" d="([^"]*)"/g))
        for (const [, x, high] of path.matchAll(/M([\d.]+) [\d.]+h[\d.]+v([\d.]+)h-[\d.]+z/g))
          columns.set(Number(x), (columns.get(Number(x)) ?? 0) + Number(high))
      return { label, columns, room: Number(height) - 28 }
    },
  )
  return { counts, charts }
}

/** Compares the files of a report with its answer. */
function compareFiles(report: ReportAnswer, nowMs: number) {
  const csv = readCsv(reportCsv(report))
  const sheet = readSheet(renderSheet(report, { portal: null, nowMs }))
  for (const name of COUNTS) {
    const ofDays = Object.fromEntries(report.days.flatMap(({ day, counts }) => (counts[name] === 0 ? [] : [[day, counts[name]]])))
    expect([name, csv.countOf(name), csv.days(name)]).toEqual([name, String(report.counts[name]), ofDays])
    expect([name, sheet.counts.get(countName(name))]).toEqual([name, report.counts[name]])
    expect([name, report.days.reduce((sum, { counts }) => sum + counts[name], 0)]).toEqual([name, report.counts[name]])
  }
  expect(csv.outages).toEqual(report.outages.map(({ from, until }) => [from, until ?? '']))
  expect(Object.keys(csv.corrections)).toEqual(report.corrections.map(({ foundOn }) => foundOn))
  const [entries] = sheet.charts
  const sums = report.days.map(({ counts }) => counts.pushed + counts.lost)
  const [step, highest] = [720 / report.days.length, Math.max(1, ...sums)]
  for (const [at, sum] of sums.entries()) {
    const high = entries?.columns.get(Math.round((at * step + step * 0.12) * 10) / 10) ?? 0
    expect(Math.abs(high - (sum / highest) * (entries?.room ?? 0))).toBeLessThan(2.5)
  }
}

async function compare(engine: Engine, seed: number) {
  const [zones, from, to] = LIVES[seed % LIVES.length] ?? LIVES[0]
  const life = await liveOverDays(engine, seed, zones, [Date.parse(from), Date.parse(to)])
  const months = [...new Set([from.slice(0, 7), to.slice(0, 7), ...(to.slice(5, 7) === '05' ? ['2026-04'] : [])])]
  for (const month of months) {
    const report = await life.read(month)
    const today = dateIn(life.zone(), life.now())
    const last =
      [today, ...life.days.keys()]
        .filter((day) => day.slice(0, 7) <= month)
        .sort()
        .at(-1) ?? ''
    expect([seed, month, report.zone, report.days.map(({ day }) => day)]).toEqual([seed, month, life.zone(), daysOf(month, last)])
    for (const { day, counts } of report.days)
      for (const name of COUNTS)
        expect([seed, day, name, counts[name]]).toEqual([
          seed,
          day,
          name,
          life.days.get(day)?.[name] ?? (name === 'disagreed' || name === 'reworded' || name === 'outOfOrder' ? counts[name] : 0),
        ])
    const wanted = [...(life.corrections.get(month) ?? [])]
      .map(([foundOn, counts]) => ({ foundOn, changes: Object.fromEntries(Object.entries(counts).filter(([, by]) => by !== 0)) }))
      .toSorted((a, b) => (a.foundOn < b.foundOn ? -1 : 1))
    expect([seed, month, report.corrections]).toEqual([seed, month, wanted])
    const touching = life.outages.filter(
      (one) => dateIn(life.zone(), one.fromMs).slice(0, 7) <= month && dateIn(life.zone(), one.untilMs).slice(0, 7) >= month,
    )
    expect(report.outages.map(({ from: began }) => Date.parse(began))).toEqual(touching.map(({ fromMs }) => fromMs))
    compareFiles(report, life.now())
  }
}

describe.each(engines)('days of 23 and 25 hours, and a zone that a reload changes, on $name', (engine) => {
  test('10.9: each fact counts on its day once; JSON, CSV and the printed file say the same', async () => {
    for (let seed = 0; seed < runsOn(engine, 12, 4); seed++) await compare(engine, seed)
  })
})

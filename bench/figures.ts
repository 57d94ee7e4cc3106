import { median } from './load/percentiles.ts'
import type { Figure, Observation } from './suite.ts'

export type Verdict = 'aim' | 'ok' | 'MISS' | ''

/** Makes a figure from its rounds; its value is their median. */
export function figure(name: string, rounds: readonly number[], rest: Omit<Figure, 'name' | 'rounds' | 'value'>): Figure {
  return { name, value: median(rounds), rounds, ...rest }
}

/** Judges a figure against its goals. NaN always fails. */
export function judge({ value, better, must, aim }: Figure): Verdict {
  if (must === undefined) return ''
  const reaches = (wanted: number) => (better === 'higher' ? value >= wanted : value <= wanted)
  if (!reaches(must)) return 'MISS'
  return aim !== undefined && reaches(aim) ? 'aim' : 'ok'
}

export function figuresTable(figures: readonly Figure[]): string {
  const rows = figures.map((of) => [of.name, quantity(of.value, of), spread(of), wanted(of.must, of), wanted(of.aim, of), judge(of)])
  return table(['figure', 'value', 'rounds', 'must', 'aim', ''], rows)
}

export function observationsTable(observations: readonly Observation[]): string {
  const columns = [...new Set(observations.flatMap(({ facts }) => Object.keys(facts)))]
  return table(
    ['', ...columns],
    observations.map(({ name, facts }) => [name, ...columns.map((column) => String(facts[column] ?? ''))]),
  )
}

function quantity(value: number, { unit }: Figure): string {
  return unit === 'x' ? digits(value) : `${digits(value)} ${unit}`
}

/** The spread of the rounds, which shows how reliable the median is. */
function spread({ rounds }: Figure): string {
  return rounds.length < 2 ? '' : `${digits(Math.min(...rounds))} to ${digits(Math.max(...rounds))}`
}

function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

function wanted(value: number | undefined, of: Figure): string {
  if (value === undefined) return ''
  return `${of.better === 'higher' ? '>=' : '<='} ${of.unit === 'x' ? value : `${value} ${of.unit}`}`
}

/** Aligns the first column left, the others right. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd()
  return [line(head), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}

import { stripVTControlCharacters, styleText } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { parseDuration, spanText } from '../../../core/domain/amounts.ts'

/** The style of a cell on a terminal that shows colours. */
export type Tone = 'good' | 'warn' | 'bad' | 'dim'

export type Cell = string | { readonly text: string; readonly tone: Tone }

const STYLES = { good: 'green', warn: 'yellow', bad: 'red', dim: 'dim' } as const

/** Colours a text if standard output is a terminal and NO_COLOR does not forbid it. */
export function paint(text: string, tone: Tone): string {
  return styleText(STYLES[tone], text, { stream: process.stdout })
}

/** Replaces control characters. Otherwise the sender of a text could move the cursor or change the window's title. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/[\p{Cc}\u{61c}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]+/gu, ' ')
}

/** Returns a received body for standard output. On a terminal its control characters are replaced; a file or a program gets it unchanged. */
export function shownBody(body: string): string {
  return process.stdout.isTTY ? body.split('\n').map(plain).join('\n') : body
}

/** Aligns rows under their titles. The last column is not padded. */
export function table(titles: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map((cell) => plain(typeof cell === 'string' ? cell : cell.text)))
  const widths = titles.map((title, at) => Math.max(title.length, ...texts.map((row) => row[at]?.length ?? 0)))
  const line = (cells: readonly string[], look: (text: string, at: number) => string) =>
    cells.map((text, at) => `${look(text, at)}${at === cells.length - 1 ? '' : ' '.repeat((widths[at] ?? 0) - text.length)}`).join('  ')
  const head = line(
    titles.map((title) => title.toUpperCase()),
    (text) => paint(text, 'dim'),
  )
  const body = texts.map((row, rowAt) =>
    line(row, (text, at) => {
      const cell = rows[rowAt]?.[at]
      return typeof cell === 'object' && text !== '' ? paint(text, cell.tone) : text
    }).trimEnd(),
  )
  return `${[head, ...body].join('\n')}\n`
}

/** Says how long ago `instant` was, such as `12 min`; empty for null. */
export function age(instant: string | null, nowMs = Date.now()): string {
  return instant === null ? '' : spanText(Math.max(0, nowMs - Date.parse(instant)))
}

/** Says how far ahead a time is, such as `in 12 min`; `now`: the time has come. */
export function until(instant: string, nowMs = Date.now()): string {
  const aheadMs = Date.parse(instant) - nowMs
  return aheadMs <= 0 ? 'now' : `in ${spanText(aheadMs)}`
}

/** Reads a time: an instant with its time zone, or a duration such as `2h`, which means two hours ago. Null: the text is neither. */
function readTime(text: string, nowMs = Date.now()): string | null {
  const agoMs = parseDuration(text)
  if (agoMs !== null) return new Date(nowMs - agoMs).toISOString()
  return /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) && !Number.isNaN(Date.parse(text)) ? new Date(text).toISOString() : null
}

export function readTimeOption(text: string): string {
  const time = readTime(text)
  if (time === null) throw new InvalidArgumentError('It must be a time such as 2026-03-01T10:00:00Z, or how long ago: 2h.')
  return time
}

import { stripVTControlCharacters, styleText } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { countText, parseDuration, spanText } from '../../core/domain/amounts.ts'
import { parseTime } from '../../core/domain/instant.ts'
import { fail } from './exit-codes.ts'

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
  const atMs = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? parseTime(text) : Number.NaN
  return Number.isNaN(atMs) ? null : new Date(atMs).toISOString()
}

export function readTimeOption(text: string): string {
  const time = readTime(text)
  if (time === null) throw new InvalidArgumentError('It must be a time such as 2026-03-01T10:00:00Z, or how long ago: 2h.')
  return time
}

/** The output that shows progress. */
export interface Screen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

const CELLS = 24

/** Creates the progress line. A terminal shows a bar that is redrawn, or only a count if the total is unknown. Other output gets a line per step. */
export function createProgressLine(screen: Screen) {
  let shown = ''
  let width = 0
  return {
    /** Shows the name of a step, and how many units (`done`) of how many (`total`) are done. */
    show(step: string, done: number, total: number, unit: string) {
      if (screen.isTTY === true) {
        const amount =
          total > 0
            ? ` ${bar(done / total)} ${countText(done)} of ${countText(total)} ${unit}`
            : done > 0
              ? ` ${countText(done)} ${unit}`
              : ''
        const line = `${step}${amount}`
        screen.write(`\r${line.padEnd(width)}`)
        width = line.length
      } else if (step !== shown) screen.write(`${step}${total > 0 ? `: ${countText(total)} ${unit}` : ''}\n`)
      shown = step
    },
    /** Ends the line after the last step. */
    end() {
      if (screen.isTTY === true && shown !== '') screen.write('\n')
    },
  }
}

function bar(share: number): string {
  const full = Math.round(Math.min(1, share) * CELLS)
  return `[${'='.repeat(full)}${' '.repeat(CELLS - full)}] ${String(Math.floor(Math.min(1, share) * 100)).padStart(3)} %`
}

/** The result of a step: `outcome` in a word and a `line` about it, or the reason why it failed. */
export type StepEnd = { readonly outcome: string; readonly line: string } | { readonly failure: string }

interface ManyStepsOptions {
  /** The name of the work, and the unit of its count, for the progress bar. */
  readonly step: string
  readonly unit: string
  /** Whether a program reads the output. If so, every step gets a line. */
  readonly isForProgram: boolean
  /** Whether many steps get a progress bar and counts even if the output is not a terminal. */
  readonly isSummed?: boolean
}

interface Screens {
  readonly out: Screen
  readonly progress: Screen
  readonly fail: (reason: string) => void
}

const TERMINAL: Screens = { out: process.stdout, progress: process.stderr, fail }

/** From this number of steps on, a terminal shows a progress bar. With fewer steps it shows a line for each. */
const STEPS_UNDER_BAR = 20

/**
 * Takes a step for each item, one after the other. Many steps on a terminal, or with `isSummed`, get a progress bar, and a last line that counts
 * each outcome. Otherwise each step gets a line. Each failure gets a line in any case.
 */
export async function takeSteps<Item>(
  items: readonly Item[],
  take: (item: Item, at: number) => Promise<StepEnd>,
  { step, unit, isForProgram, isSummed = false }: ManyStepsOptions,
  { out, progress, fail }: Screens = TERMINAL,
): Promise<void> {
  const isTerminal = out.isTTY === true && progress.isTTY === true
  const bar = !isForProgram && (isTerminal || isSummed) && items.length >= STEPS_UNDER_BAR ? createProgressLine(progress) : null
  const outcomes = new Map<string, number>()
  const failures: string[] = []
  for (const [at, item] of items.entries()) {
    const end = await take(item, at)
    if ('failure' in end) failures.push(end.failure)
    else outcomes.set(end.outcome, (outcomes.get(end.outcome) ?? 0) + 1)
    if (bar !== null) bar.show(step, at + 1, items.length, unit)
    else if ('failure' in end) fail(end.failure)
    else out.write(`${end.line}\n`)
  }
  if (bar === null) return
  bar.end()
  const counts = [...outcomes].map(([outcome, count]) => `${countText(count)} ${outcome}`)
  out.write(`${[...counts, ...(failures.length === 0 ? [] : [`${countText(failures.length)} failed`])].join(', ')}\n`)
  for (const failure of failures) fail(failure)
}

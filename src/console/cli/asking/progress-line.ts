import { countText } from '../../../core/domain/amounts.ts'
import { fail } from '../exit-codes.ts'

/** The output that shows progress. */
export interface Screen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

export interface ProgressLine {
  /** Shows the name of a step, and how many units (`done`) of how many (`total`) are done. */
  show(step: string, done: number, total: number, unit: string): void
  /** Ends the line after the last step. */
  end(): void
}

const CELLS = 24

/** Creates the progress line. A terminal shows a bar that is redrawn, or only a count if the total is unknown. Other output gets a line per step. */
export function createProgressLine(screen: Screen): ProgressLine {
  let shown = ''
  let width = 0
  return {
    show(step, done, total, unit) {
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

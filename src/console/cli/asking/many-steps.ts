import { countText } from '../../../core/domain/amounts.ts'
import { fail } from '../exit-codes.ts'
import { createProgressLine, type Screen } from './progress-line.ts'

/** The result of a step: `outcome` in a word and a `line` about it, or the reason why it failed. */
export type StepEnd = { readonly outcome: string; readonly line: string } | { readonly failure: string }

export interface ManyStepsOptions {
  /** The name of the work, and the unit of its count, for the progress bar. */
  readonly step: string
  readonly unit: string
  /** Whether a program reads the output. If so, every step gets a line. */
  readonly isForProgram: boolean
  /** Whether many steps get a progress bar and counts even if the output is not a terminal. */
  readonly isSummed?: boolean
}

export interface Screens {
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

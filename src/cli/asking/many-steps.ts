import { countText } from '../../domain/amounts.ts'
import { fail } from '../exit-codes.ts'
import { createProgressLine, type Screen } from './progress-line.ts'

/** How a step ended: with an outcome in a word and a line about it, or with a reason why it failed. */
export type StepEnd = { readonly outcome: string; readonly line: string } | { readonly failure: string }

export interface ManyStepsOptions {
  /** What is done, and what is counted. */
  readonly step: string
  readonly unit: string
  /** Whether the lines are for a program, which wants all of them. */
  readonly isForProgram: boolean
  /** Whether people get only the counts of many steps wherever they read them. */
  readonly isSummed?: boolean
}

/** Where lines, progress and failures go. */
export interface Screens {
  readonly out: Screen
  readonly progress: Screen
  readonly fail: (reason: string) => void
}

const TERMINAL: Screens = { out: process.stdout, progress: process.stderr, fail }

/** A terminal shows a bar from this number of steps on. With fewer steps it shows a line for each. */
const STEPS_UNDER_BAR = 20

/**
 * Takes a step for each of many items, one after the other. On a terminal many steps have one progress bar, and a line at the end with how
 * often each outcome occurred; otherwise each has its line, unless `isSummed`. Failures always have a line.
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

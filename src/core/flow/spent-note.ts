import { describeSpent } from '../domain/polling/call-budget.ts'

/** Returns the time until which the day's calls to the carrier are used up, epoch milliseconds; null: they are not used up. */
export type SpentUntil = () => number | null

/** Returns a sentence to add to a message if the day's calls are known to be used up; otherwise ''. */
export function spentNote(spentUntilMs: SpentUntil | undefined): string {
  const untilMs = spentUntilMs?.() ?? null
  return untilMs === null ? '' : ` ${describeSpent(untilMs)}`
}

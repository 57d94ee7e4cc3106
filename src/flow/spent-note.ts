import { describeSpent } from '../domain/polling/call-budget.ts'

/** Until when the day's calls to the carrier are used up, epoch milliseconds; null: they are not. */
export type SpentUntil = () => number | null

/** A sentence to add if the relay's own limit is what keeps it from asking; otherwise nothing. `spentUntilMs` undefined: not known. */
export function spentNote(spentUntilMs: SpentUntil | undefined): string {
  const untilMs = spentUntilMs?.() ?? null
  return untilMs === null ? '' : ` ${describeSpent(untilMs)}`
}

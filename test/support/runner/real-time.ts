/**
 * How long something may take that is owed within so many milliseconds of real time, where no clock of the test can show it: the machine may be several times
 * slower than one that has nothing else to do.
 */
export function withinOwed(owedMs: number): number {
  return owedMs <= 1000 ? 10 * owedMs : 3 * owedMs
}

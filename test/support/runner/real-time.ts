/**
 * Returns how long a test waits for something that must happen within `owedMs` of real time, if it cannot set the clock. The wait is several
 * times as long, because the machine may be several times slower than an idle one.
 */
export function withinOwed(owedMs: number): number {
  return owedMs <= 1000 ? 10 * owedMs : 3 * owedMs
}

/**
 * How long to wait for something that must happen within `owedMs` of real time, where the test cannot set the clock: the machine may be
 * several times slower than an idle one.
 */
export function withinOwed(owedMs: number): number {
  return owedMs <= 1000 ? 10 * owedMs : 3 * owedMs
}

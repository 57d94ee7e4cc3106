/** What broke a promise of the relay's, each with the day and the seed that repeat it. */
export interface Violations {
  add(what: string): void
  readonly found: readonly string[]
}

/** More than these say nothing new. */
const FOUND_MAX = 40

export function createViolations(seed: number, today: () => number): Violations {
  const found: string[] = []
  return {
    found,
    add(what) {
      if (found.length >= FOUND_MAX) return
      found.push(`day ${today()}, seed ${seed}: ${what}`)
      console.log(`VIOLATION ${found.at(-1)}`)
    },
  }
}

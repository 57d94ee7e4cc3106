/** The broken promises of the relay, each with its day and the seed that repeats it. */
export interface Violations {
  add(what: string): void
  readonly found: readonly string[]
}

/** More violations than this tell nothing new. */
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

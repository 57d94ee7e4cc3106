/** Returns a pseudorandom generator of numbers in [0, 1) (mulberry32). The same seed gives the same numbers in every run. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Draws with a generator: whole numbers below a limit, and members of a list. */
export function drawWith(random: () => number) {
  const below = (limit: number): number => Math.floor(random() * limit)
  const pick = <T>(from: readonly T[]): T => {
    const [picked] = from.slice(below(from.length))
    if (picked === undefined) throw new RangeError('there is nothing to pick from')
    return picked
  }
  return { below, pick }
}

/** Hashes a seed and names to a 32-bit number. With different names, random decisions are independent of each other. */
function mix(seed: number, names: readonly (string | number)[]): number {
  let hash = Math.imul(seed | 0, 0x9e3779b1) ^ 0x811c9dc5
  for (const letter of names.join('\u0001')) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

export type Random = () => number

/** Creates a generator of numbers in [0, 1). The same seed and names give the same numbers. */
export function randomFor(seed: number, ...names: readonly (string | number)[]): Random {
  let state = mix(seed, names)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let word = Math.imul(state ^ (state >>> 15), 1 | state)
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word
    return ((word ^ (word >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Returns a number in [0, 1). The same seed and names give the same number. */
export function drawFor(seed: number, ...names: readonly (string | number)[]): number {
  return randomFor(seed, ...names)()
}

export function between(random: Random, from: number, to: number): number {
  return Math.floor(from + random() * (to - from))
}

export function pick<T>(random: Random, choices: readonly [T, ...T[]]): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0]
}

export function shuffled<T>(random: Random, items: readonly T[]): readonly T[] {
  const left = [...items]
  const drawn: T[] = []
  while (left.length > 0) drawn.push(...left.splice(Math.floor(random() * left.length), 1))
  return drawn
}

const WORDS = 4 * 1024 * 1024
const SLOT_MS = 5
const SLOTS = 600

/**
 * The share of three seconds in which memory that no processor's cache holds was read at less than half the speed it can have. A machine that
 * shares its memory with others may stand still for a tenth of a second now and then, though no processor's time is missing: what is slower
 * than 99 in 100 is then decided by others.
 */
export function slowMemoryShare(): number {
  // Each word names the next: no read can begin before the last has ended. An odd factor and an odd step reach every word in turn.
  const next = Uint32Array.from({ length: WORDS }, (_, at) => (Math.imul(at, 1_664_525) + 1_013_904_223) & (WORDS - 1))
  let at = 0
  const reads = Array.from({ length: SLOTS }, () => {
    let count = 0
    for (const endMs = performance.now() + SLOT_MS; performance.now() < endMs; count++) {
      for (let read = 0; read < 1000; read++) at = next[at] ?? 0
    }
    return count
  })
  const best = Math.max(...reads)
  return reads.filter((count) => count < best / 2).length / SLOTS
}

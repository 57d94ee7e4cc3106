const WORDS = 4 * 1024 * 1024
const SLOT_MS = 5
const SLOTS = 600

/**
 * Returns the share of three seconds in which uncached memory was read at less than half its full speed. A virtual machine may stall for a tenth
 * of a second although it loses no processor time; its neighbors then decide the 99th percentile.
 */
export function slowMemoryShare(): number {
  // A pointer chase: each word holds the index of the next, so reads cannot overlap. The generator has full period, so it visits all.
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

/** Nobody ever wakes who waits for it: timers of the event loop know whole milliseconds only. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

export interface Pace {
  /** To be called before each commit: stops the thread until it may begin, unless many are waiting to be committed. */
  keep(waiting: number): void
  /** How many the commit has. */
  begins(size: number): void
}

/**
 * Keeps commits apart while few wait for the next: a commit costs what recording several of them does, and everybody shares the processors.
 * Meanwhile who answers has the writer's. After one that came alone the next is not kept waiting, and many never are: their commit is worth it.
 */
export function createPace({ everyMs, many }: { readonly everyMs: number; readonly many: number }, monotonic: () => number): Pace {
  let nextMs = 0
  return {
    keep(waiting) {
      const leftMs = nextMs - monotonic()
      if (waiting < many && leftMs > 0) Atomics.wait(NEVER, 0, 0, leftMs)
    },
    begins(size) {
      nextMs = size > 1 ? monotonic() + everyMs : 0
    },
  }
}

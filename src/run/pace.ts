/** Nobody ever wakes who waits for it: timers of the event loop know whole milliseconds only. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

export interface Pace {
  /** To be called before each commit: stops the thread until it may begin, if the last one had several to commit. */
  keep(): void
  /** How many the commit has. */
  begins(size: number): void
}

/**
 * Keeps commits apart while observations come several at a time: each commit costs what recording several of them does, and everybody
 * shares the processors. Who comes alone is committed at once.
 */
export function createPace(everyMs: number, monotonic: () => number): Pace {
  let nextMs = 0
  return {
    keep() {
      const leftMs = nextMs - monotonic()
      if (leftMs > 0) Atomics.wait(NEVER, 0, 0, leftMs)
    },
    begins(size) {
      nextMs = size > 1 ? monotonic() + everyMs : 0
    },
  }
}

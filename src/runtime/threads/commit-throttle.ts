/** Nobody ever wakes who waits for it: timers of the event loop know whole milliseconds only. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

/** Pushes that come as fast as they are recorded let many wait at every commit, and a commit takes some milliseconds. */
const BUSY_MS = 20

export interface CommitThrottle {
  /** To be called before each commit: stops the thread until it may begin, unless many are waiting to be committed. */
  keep(waiting: number): void
  /** How many the commit has. */
  begins(size: number): void
  /** Whether many were waiting a moment ago. */
  isBusy(): boolean
}

/**
 * Keeps commits apart while few wait for the next: a commit costs what recording several of them does, and everybody shares the processors.
 * Meanwhile who answers has the writer's. After one that came alone the next is not kept waiting, and many never are: their commit is worth it.
 */
export function createCommitThrottle(
  { everyMs, many }: { readonly everyMs: number; readonly many: number },
  monotonic: () => number,
  stopThread: (ms: number) => void = (ms) => void Atomics.wait(NEVER, 0, 0, ms),
): CommitThrottle {
  let nextMs = 0
  let busyUntilMs = Number.NEGATIVE_INFINITY
  return {
    keep(waiting) {
      const nowMs = monotonic()
      const leftMs = nextMs - nowMs
      if (waiting >= many) busyUntilMs = nowMs + BUSY_MS
      if (waiting < many && leftMs > 0) stopThread(leftMs)
    },
    begins(size) {
      nextMs = size > 1 ? monotonic() + everyMs : 0
    },
    isBusy: () => monotonic() < busyUntilMs,
  }
}

/** Only waited on with a timeout, because event-loop timers have a resolution of a millisecond. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

/** How long a busy moment is remembered: under full load many wait at every commit, and a commit takes some milliseconds. */
const BUSY_MS = 20

export interface CommitThrottle {
  /** Call before each commit: blocks the thread until it may begin, unless many observations are waiting. */
  keep(waiting: number): void
  /** Call with the size of the batch when the commit begins. */
  begins(size: number): void
  /** Whether many were waiting recently. */
  isBusy(): boolean
}

/**
 * Spaces commits while few observations wait, because a commit costs as much as recording several of them; meanwhile other threads have the
 * processor. A commit after one with a single observation, and one with many waiting, begins at once.
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

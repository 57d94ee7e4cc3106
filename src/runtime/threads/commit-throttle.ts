/** Nothing ever changes this. Waiting for it with a time-out is a pause that is more precise than the event loop's milliseconds. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

/**
 * How long the throttle counts as busy after a busy moment. Under full load every commit is such a moment, and commits are a few
 * milliseconds apart.
 */
const BUSY_MS = 20

export interface CommitThrottle {
  /** Call it before each commit. It blocks the thread until the commit may begin, unless many observations wait. */
  keep(waiting: number): void
  /** Call when the commit begins, with the size of its batch. */
  begins(size: number): void
  /** Whether many observations were waiting a moment ago. */
  isBusy(): boolean
}

/**
 * Spaces commits while few observations wait. A commit costs as much as recording several observations, and a pause leaves the processor to
 * other threads. If many observations wait, or if the last commit had only one, the next commit begins at once.
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

/** Nothing ever changes this: waiting on it with a timeout is a pause that is more precise than the event loop's milliseconds. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

/** How long after a busy moment the throttle counts as busy. Under full load every commit is one, and commits are a few milliseconds apart. */
const BUSY_MS = 20

export interface CommitThrottle {
  /** Call before each commit: blocks the thread until it may begin, unless many observations are waiting. */
  keep(waiting: number): void
  /** Call when the commit begins, with the size of its batch. */
  begins(size: number): void
  /** Whether many observations were waiting recently. */
  isBusy(): boolean
}

/**
 * Spaces commits while few observations wait, because a commit costs as much as recording several of them, and leaves the processor to other
 * threads meanwhile. If many wait, or if the last commit had a single observation, the next begins at once.
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

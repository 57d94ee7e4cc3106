/** No thread ever notifies this, so `Atomics.wait` on it always lasts until its time-out. It is more precise than a timer of the event loop. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

/**
 * How long `isBusy` stays true after many observations were waiting. Under full load, commits are only a few milliseconds apart and many
 * observations wait at each, so `isBusy` is always true.
 */
const BUSY_MS = 20

export interface CommitThrottle {
  /** Blocks the thread until the next commit may begin, unless many observations wait. Call it before each commit. */
  keep(waiting: number): void
  /** Call it when a commit begins. `size`: the number of observations in its batch. */
  begins(size: number): void
  isBusy(): boolean
}

/**
 * Creates a throttle that keeps commits `everyMs` apart while few observations wait. A commit costs as much as recording several observations,
 * so fewer and larger commits leave more processor time to other threads. If `many` or more observations wait, or if the last commit had at
 * most one observation, the next commit begins at once.
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

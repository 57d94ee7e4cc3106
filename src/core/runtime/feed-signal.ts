import type { FeedSignal } from '../flow/ports.ts'

/** The minimum time between two wake-ups, so that each wake-up finds several events under load. */
const REST_MS = 50
/** With many followers, the minimum time is their number times this time, so that the number of answers per second stays limited. */
const REST_MS_PER_FOLLOWER = 0.2

export interface FeedSignalSource extends FeedSignal {
  /** Wakes the followers. Call it after each commit. */
  tell(): void
  /** Ends all waits. Later waits end at once. */
  close(): void
}

/** Creates the signal that wakes followers of the feed: at once or, if the last wake-up was just before, after the minimum time. */
export function createFeedSignal(): FeedSignalSource {
  let wakeUps = 0
  let closed = false
  let isPending = false
  let rest: NodeJS.Timeout | null = null
  const waiting = new Set<() => void>()

  function wakeAll(): void {
    wakeUps += 1
    for (const wake of waiting) wake()
  }

  function fire(): void {
    isPending = false
    const restMs = Math.max(REST_MS, waiting.size * REST_MS_PER_FOLLOWER)
    rest = setTimeout(() => {
      rest = null
      if (isPending) fire()
    }, restMs)
    wakeAll()
  }

  return {
    tell() {
      if (closed) return
      if (rest === null) fire()
      else isPending = true
    },
    seen: () => wakeUps,
    isClosed: () => closed,
    wait(seen, timeoutMs, left) {
      if (closed || left.aborted || wakeUps > seen) return Promise.resolve()
      return new Promise((resolve) => {
        const wake = () => {
          clearTimeout(timer)
          waiting.delete(wake)
          left.removeEventListener('abort', wake)
          resolve()
        }
        const timer = setTimeout(wake, timeoutMs)
        waiting.add(wake)
        left.addEventListener('abort', wake)
      })
    },
    close() {
      closed = true
      if (rest !== null) clearTimeout(rest)
      wakeAll()
    },
  }
}

/** Creates a function that lets `atOnce` waiting callers go on in each turn of the event loop, so that other work can run in between. */
export function createTickLimit(atOnce: number): () => Promise<void> {
  const waiting: (() => void)[] = []
  function letGo(): void {
    for (const go of waiting.splice(0, atOnce)) go()
    if (waiting.length > 0) setImmediate(letGo)
  }
  return () =>
    new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(letGo)
    })
}

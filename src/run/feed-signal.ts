import type { FeedSignal } from '../flow/ports.ts'

/** Under load, those who follow are woken this often at most: what one look then finds is more. */
const REST_MS = 50

export interface FeedSignalSource extends FeedSignal {
  /** Something was committed. */
  tell(): void
  /** Nobody waits from now on. */
  close(): void
}

/** Wakes whoever follows the feed: at once when it was quiet, else once the rest is over. */
export function createFeedSignal(): FeedSignalSource {
  let told = 0
  let closed = false
  let untold = false
  let rest: NodeJS.Timeout | null = null
  const waiting = new Set<() => void>()

  function wakeAll(): void {
    told += 1
    for (const wake of waiting) wake()
  }

  function fire(): void {
    untold = false
    rest = setTimeout(() => {
      rest = null
      if (untold) fire()
    }, REST_MS)
    wakeAll()
  }

  return {
    tell() {
      if (closed) return
      if (rest === null) fire()
      else untold = true
    },
    seen: () => told,
    isClosed: () => closed,
    wait(seen, timeoutMs, left) {
      if (closed || left.aborted || told > seen) return Promise.resolve()
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

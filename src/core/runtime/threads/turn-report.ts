/** Collects changes on one thread until another thread asks for a report of them. */
export interface TurnReport<Report> {
  /** Notes that something has changed. `isAwaited`: another thread waits for this change, so the report must not be delayed. */
  changed(isAwaited: boolean): void
  /** Resolves with the changes since the last report, when there are any. Only one caller may wait at a time. */
  next(): Promise<Report>
  /** Reports at once, or as soon as a caller waits. Resolves when everything that has changed before the call is reported. */
  flush(): Promise<void>
}

/** How long changes that nobody waits for are collected before they are reported. Every report wakes another thread, which costs time. */
const INTERVAL_MS = 20

/**
 * A change that another thread waits for is reported at the end of the turn of the event loop, together with all other changes. `gather`
 * returns all changes since its last call.
 */
export function createTurnReport<Report>(gather: () => Report): TurnReport<Report> {
  let asked: ((report: Report) => void) | null = null
  let hasChanged = false
  let isAwaited = false
  let isDue = false
  let interval: NodeJS.Timeout | null = null
  let flushed: (() => void)[] = []

  function flush(): void {
    isDue = false
    if (asked === null || !hasChanged) return
    if (interval !== null) clearTimeout(interval)
    interval = null
    const answer = asked
    asked = null
    hasChanged = false
    isAwaited = false
    answer(gather())
    for (const resolve of flushed) resolve()
    flushed = []
  }

  function flushSoon(): void {
    if (asked === null || !hasChanged) return
    if (!isAwaited) interval ??= setTimeout(flush, INTERVAL_MS)
    else if (!isDue) {
      isDue = true
      setImmediate(flush)
    }
  }

  return {
    changed(awaited) {
      hasChanged = true
      isAwaited ||= awaited
      flushSoon()
    },
    next: () =>
      new Promise((resolve) => {
        asked = resolve
        flushSoon()
      }),
    flush: () =>
      new Promise((resolve) => {
        if (!hasChanged) return resolve()
        flushed.push(resolve)
        isAwaited = true
        flush()
      }),
  }
}

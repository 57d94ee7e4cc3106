/** Collects what happens on a thread until another thread asks for it. */
export interface TurnReport<Report> {
  /** Call when something has happened. `isAwaited`: somebody acts on it, so that it cannot wait for the interval. */
  changed(isAwaited: boolean): void
  /** Resolves with what has not been reported, once there is something. Only one caller may wait at a time. */
  next(): Promise<Report>
  /** Reports at once if something has happened and a caller waits. */
  flush(): void
}

/** What nobody awaits is reported this often, because every report wakes another thread. */
const INTERVAL_MS = 20

/** Reports at the end of a turn of the event loop what is awaited, with all that was not. `gather` returns what has happened since its last call. */
export function createTurnReport<Report>(gather: () => Report): TurnReport<Report> {
  let asked: ((report: Report) => void) | null = null
  let hasChanged = false
  let isAwaited = false
  let isDue = false
  let interval: NodeJS.Timeout | null = null

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
    flush,
  }
}

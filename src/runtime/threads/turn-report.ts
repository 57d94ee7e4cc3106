/** Collects what happens on a thread until another thread asks for it. */
export interface TurnReport<Report> {
  /** Call it when something has happened. `isAwaited`: another thread waits for it, so the report is not held back. */
  changed(isAwaited: boolean): void
  /** Resolves with a report as soon as something has happened since the last one. Only one caller may wait at a time. */
  next(): Promise<Report>
  /** Reports at once if something has happened and a caller waits. */
  flush(): void
}

/** Changes that nobody waits for are reported only this often, because every report wakes another thread. */
const INTERVAL_MS = 20

/**
 * At the end of the turn of the event loop, reports a change that somebody waits for, together with all other changes. `gather` returns
 * what has happened since its last call.
 */
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

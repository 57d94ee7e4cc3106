/** Collects what happens on a thread until another thread asks for it. */
export interface TurnReport<Report> {
  /** Call when something has happened. */
  changed(): void
  /** Resolves at the end of a turn of the event loop with unreported changes. Only one caller may wait at a time. */
  next(): Promise<Report>
  /** Reports at once if something has happened and a caller waits. */
  flush(): void
}

/** Reports once per turn of the event loop. `gather` returns what has happened since its last call. */
export function createTurnReport<Report>(gather: () => Report): TurnReport<Report> {
  let asked: ((report: Report) => void) | null = null
  let hasChanged = false
  let isDue = false

  function flush(): void {
    isDue = false
    if (asked === null || !hasChanged) return
    const answer = asked
    asked = null
    hasChanged = false
    answer(gather())
  }

  function flushSoon(): void {
    if (asked === null || !hasChanged || isDue) return
    isDue = true
    setImmediate(flush)
  }

  return {
    changed() {
      hasChanged = true
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

/** What happens on a thread, gathered for another one that asks for it. */
export interface TurnReport<Report> {
  /** Something happened. */
  changed(): void
  /** Resolves at the end of a turn of the event loop in which something happened that was not reported yet. Only one may ask at a time. */
  next(): Promise<Report>
  /** Answers at once, if something happened and somebody asks. */
  flush(): void
}

/** Reports once a turn, however much happens in it. `gather` hands over what happened since it was last called. */
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

/** What happens on a thread, gathered for one who asks for it. */
export interface NewsDesk<News> {
  /** Something happened. `urgent`: somebody waits for it. */
  stir(urgent: boolean): void
  /** Resolves when something has happened that was not told yet. Only one may ask at a time. */
  next(): Promise<News>
  /** Tells at once what has happened, if it is asked for. */
  give(): void
}

/** Under load, what is not urgent is told this often at most: each telling is a message and wakes a thread. */
const REST_MS = 20

/**
 * Tells at the end of a turn of the event loop all that happened in it, or, if it told something just before and nothing is urgent, once the
 * rest is over; and to one who is too busy to ask, all of it at once when he does. `gather` hands over what happened since it was last called.
 */
export function createNewsDesk<News>(gather: () => News): NewsDesk<News> {
  let asked: ((news: News) => void) | null = null
  let isStirred = false
  let isUrgent = false
  let isDue = false
  let rest: NodeJS.Timeout | null = null

  function give(): void {
    isDue = false
    if (asked === null || !isStirred) return
    const answer = asked
    asked = null
    isStirred = false
    isUrgent = false
    rest ??= setTimeout(() => {
      rest = null
      giveSoon()
    }, REST_MS).unref()
    answer(gather())
  }

  function giveSoon(): void {
    if (asked === null || !isStirred || isDue || (rest !== null && !isUrgent)) return
    isDue = true
    setImmediate(give)
  }

  return {
    stir(urgent) {
      isStirred = true
      isUrgent ||= urgent
      giveSoon()
    },
    next: () =>
      new Promise((resolve) => {
        asked = resolve
        giveSoon()
      }),
    give,
  }
}

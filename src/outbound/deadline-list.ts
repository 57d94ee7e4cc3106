import type { StartTimer } from './deadline.ts'

export interface DeadlineEntry {
  /** Called when the entry's time is over, or when the owner ends all entries. */
  readonly end: () => void
  readonly untilMs: number
  previous: DeadlineEntry | null
  next: DeadlineEntry | null
}

export interface DeadlineList {
  add(end: () => void, nowMs: number): DeadlineEntry
  /** Must be called once for each entry, even after its `end` was called. */
  remove(one: DeadlineEntry): void
  /** Returns the entries in the order in which they were added. */
  all(): readonly DeadlineEntry[]
  /** Sets a function that is called when the list becomes empty, or at once if it is empty. */
  onEmpty(run: () => void): void
}

/**
 * Ends posts that take too long. All posts have the same time limit, so the oldest post is due first, and one timer is enough.
 *
 * The entries are a linked list. Thousands of posts may begin per second, and at this rate a set or a map keeps many removed entries in memory.
 */
export function createDeadlineList(timeoutMs: number, startTimer: StartTimer): DeadlineList {
  let first: DeadlineEntry | null = null
  let last: DeadlineEntry | null = null
  let cancelTimer: (() => void) | null = null
  let whenEmpty = (): void => {}

  function setTimer(dueMs: number, nowMs: number): void {
    cancelTimer = startTimer(Math.max(0, dueMs - nowMs), () => {
      cancelTimer = null
      for (let one = first, next: DeadlineEntry | null; one !== null && one.untilMs <= dueMs; one = next) {
        next = one.next
        one.end()
      }
      if (first !== null && cancelTimer === null) setTimer(first.untilMs, dueMs)
    })
  }

  return {
    add(end, nowMs) {
      const one: DeadlineEntry = { end, untilMs: nowMs + timeoutMs, previous: last, next: null }
      if (last === null) first = one
      else last.next = one
      last = one
      if (cancelTimer === null) setTimer(one.untilMs, nowMs)
      return one
    },
    remove(one) {
      const { previous, next } = one
      if (previous === null) first = next
      else previous.next = next
      if (next === null) last = previous
      else next.previous = previous
      // Clear the links, so that a removed entry that is still referenced does not keep its neighbours in memory.
      one.previous = null
      one.next = null
      if (first !== null) return
      cancelTimer?.()
      cancelTimer = null
      whenEmpty()
    },
    all() {
      const all: DeadlineEntry[] = []
      for (let one = first; one !== null; one = one.next) all.push(one)
      return all
    },
    onEmpty(run) {
      whenEmpty = run
      if (first === null) run()
    },
  }
}

import type { StartTimer } from './deadline.ts'

/** One of those that may last so long and no longer. */
export interface DeadlineEntry {
  /** Ends it: its time is over, or all are ended. */
  readonly end: () => void
  readonly untilMs: number
  previous: DeadlineEntry | null
  next: DeadlineEntry | null
}

export interface DeadlineList {
  add(end: () => void, nowMs: number): DeadlineEntry
  /** To be called once for each that was added, when it has ended by itself or otherwise. */
  remove(one: DeadlineEntry): void
  /** In the order they began. */
  all(): readonly DeadlineEntry[]
  /** Called when none is left. */
  onEmpty(run: () => void): void
}

/**
 * Ends what lasts too long. As all may last equally long, they fall due in the order they began: one timer, set for the first, is enough,
 * where thousands begin a second and hardly any ever falls due. They are linked to one another and stand in no set or map: one whose
 * members come and go at this rate keeps much of what is gone alive.
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
      // What is gone must not hold on to those that came after it.
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

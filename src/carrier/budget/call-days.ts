import type { DayCalls } from '../../domain/polling/carrier-memory.ts'

const DAY_MS = 86_400_000
/** Only a clock that jumps all the time needs more. */
const DAYS_MAX = 8

/** Counts calls by UTC day of the wall clock. */
export interface CallDays {
  /** The calls that count for the day of this time: those made on it, or on a later day from which the clock was put back. */
  made(wallMs: number): number
  /** The calls made on exactly this day. */
  madeOn(wallMs: number): number
  add(wallMs: number): void
  list(): readonly DayCalls[]
}

/**
 * A new day starts at zero. A clock that is put back to an earlier day takes the later day's calls along, because they were made already.
 * Put forward again, it finds each day as it was, so jumping back and forth makes no room for more calls.
 */
export function createCallDays(earlier: { readonly atMs: number; readonly days: readonly DayCalls[] } | null): CallDays {
  let calls = new Map(earlier?.days.map(({ day, calls }) => [day, calls]))
  let today = dayOf(earlier?.atMs ?? Number.NEGATIVE_INFINITY)

  function turnTo(wallMs: number): number {
    const day = dayOf(wallMs)
    // Time has moved on: days ahead of the new one were a mistake of the clock.
    if (day > today) calls = new Map([...calls].filter(([one]) => one <= day))
    today = day
    return day
  }

  /** The two oldest days are counted as the later one, so no call is forgotten whatever the clock does. */
  function joinOldest(): void {
    const [oldest = 0, second = 0] = [...calls.keys()].sort((a, b) => a - b)
    calls.set(second, (calls.get(second) ?? 0) + (calls.get(oldest) ?? 0))
    calls.delete(oldest)
  }

  return {
    made(wallMs) {
      const day = turnTo(wallMs)
      return [...calls].reduce((sum, [one, count]) => (one >= day ? sum + count : sum), 0)
    },
    madeOn: (wallMs) => calls.get(turnTo(wallMs)) ?? 0,
    add(wallMs) {
      const day = turnTo(wallMs)
      calls.set(day, (calls.get(day) ?? 0) + 1)
      if (calls.size > DAYS_MAX) joinOldest()
    },
    list: () => [...calls].map(([day, count]) => ({ day, calls: count })),
  }
}

/** The UTC day of a time, counted from the epoch. */
export function dayOf(wallMs: number): number {
  return Math.floor(wallMs / DAY_MS)
}

/** How long the UTC day of a time still lasts, in milliseconds. */
export function remainingDayMs(wallMs: number): number {
  return DAY_MS - (wallMs % DAY_MS)
}

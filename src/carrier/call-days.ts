import type { DayCalls } from '../domain/polling/carrier-memory.ts'

const DAY_MS = 86_400_000
/** More are only told apart by a clock that jumps all the time. */
const DAYS_MAX = 8

/** Counts calls by UTC day, as the wall clock tells it when they are made. */
export interface CallDays {
  /** Calls that count for the day of this time: made on it, or on a later one that the clock has been taken back from. */
  made(wallMs: number): number
  /** Those made on the very day. */
  madeOn(wallMs: number): number
  add(wallMs: number): void
  list(): readonly DayCalls[]
}

/**
 * A new day starts at zero. A clock that is put back to an earlier day takes the calls of the later one along: they were made by now. Put
 * forward again, it finds each day as it was, so that no jumping to and fro makes room for more calls.
 */
export function createCallDays(earlier: { readonly atMs: number; readonly days: readonly DayCalls[] } | null): CallDays {
  let calls = new Map(earlier?.days.map(({ day, calls }) => [day, calls]))
  let today = dayOf(earlier?.atMs ?? Number.NEGATIVE_INFINITY)

  function turnTo(wallMs: number): number {
    const day = dayOf(wallMs)
    // Time goes on: what lies ahead of the new day was a clock's mistake.
    if (day > today) calls = new Map([...calls].filter(([one]) => one <= day))
    today = day
    return day
  }

  /** The oldest two count as the later one: whatever the clock does, none is forgotten. */
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

/** How long the UTC day of a time still lasts. */
export function remainingDayMs(wallMs: number): number {
  return DAY_MS - (wallMs % DAY_MS)
}

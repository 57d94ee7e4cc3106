/** A pause before the relay asks about an identifier again, after an answer that was neither a report nor "unknown" (DOMAIN 1.5). */
export interface Rest {
  /** The number of unusable answers in a row. */
  readonly answers: number
  /** The end of the pause. Monotonic milliseconds. */
  readonly untilMs: number
}

const FIRST_MS = 2000
const LONGEST_MS = 3_600_000

/** Returns the pause after one more unusable answer: at first two seconds, then twice as long each time, up to an hour. At least `retryAfterMs`. */
export function restAfter(before: Rest | undefined, nowMs: number, retryAfterMs: number): Rest {
  const answers = (before?.answers ?? 0) + 1
  const restMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(answers - 1, 16))
  return { answers, untilMs: nowMs + Math.max(restMs, retryAfterMs) }
}

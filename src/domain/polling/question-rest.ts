/** The pause of an identifier for which the carrier gives no usable answer: neither a report nor that it does not know it (DOMAIN 1.5). */
export interface Rest {
  /** The number of such answers in a row. */
  readonly answers: number
  /** When it may be asked about again. Monotonic milliseconds. */
  readonly untilMs: number
}

const FIRST_MS = 60_000
const LONGEST_MS = 3_600_000

/** The pause after one more such answer: a minute, doubling to an hour, and never shorter than the carrier asked for. */
export function restAfter(before: Rest | undefined, nowMs: number, retryAfterMs: number): Rest {
  const answers = (before?.answers ?? 0) + 1
  const restMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(answers - 1, 16))
  return { answers, untilMs: nowMs + Math.max(restMs, retryAfterMs) }
}

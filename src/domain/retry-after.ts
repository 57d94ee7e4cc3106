const MIN_MS = 1_000
const SECONDS = /^\d+$/
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d{2}:\d{2}:\d{2}/

/** How long to wait if an answer asks for a wait but does not say for how long. */
export const retryAfterDefaultMs = 30_000

/** The longest wait for which a `Retry-After` is obeyed. */
export const retryAfterMaxMs = 3_600_000

/** Limits a wait that the carrier asked for to between 1 s and 1 h. Returns whole milliseconds. */
export function clampRetryAfterMs(waitMs: number): number {
  return Math.round(Math.min(retryAfterMaxMs, Math.max(MIN_MS, waitMs)))
}

/**
 * Parses a `Retry-After` header (RFC 9110: seconds or an HTTP-date) to milliseconds from `nowMs`, limited to between 1 s and 1 h. Null: the
 * header is missing or invalid. Checks a date by a pattern first, because `Date.parse` accepts almost any text, even `-1`.
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | null {
  const text = header?.trim() ?? ''
  if (SECONDS.test(text)) return clampRetryAfterMs(Number(text) * 1000)
  if (!HTTP_DATE.test(text)) return null
  const atMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(atMs) ? null : clampRetryAfterMs(atMs - nowMs)
}

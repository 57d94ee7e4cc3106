const MIN_MS = 1_000
const MAX_MS = 3_600_000
const SECONDS = /^\d+$/
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d{2}:\d{2}:\d{2}/

/** How long to wait, in milliseconds, when asked to wait without being told how long. */
export const retryAfterDefaultMs = 30_000

/** Brings any wait into 1 s .. 1 h, in whole milliseconds: a carrier's word is obeyed, but neither a zero nor a century may decide how the relay works. */
export function clampRetryAfterMs(waitMs: number): number {
  return Math.round(Math.min(MAX_MS, Math.max(MIN_MS, waitMs)))
}

/**
 * Reads a `Retry-After` header (RFC 9110: seconds or an HTTP-date) as milliseconds from `nowMs`, clamped. `null` when it is absent or
 * says nothing readable. Dates must look like dates first, because the platform reads a date out of almost anything, `-1` included.
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | null {
  const text = header?.trim() ?? ''
  if (SECONDS.test(text)) return clampRetryAfterMs(Number(text) * 1000)
  if (!HTTP_DATE.test(text)) return null
  const atMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(atMs) ? null : clampRetryAfterMs(atMs - nowMs)
}

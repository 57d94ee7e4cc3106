/** An instant in UTC: `text` as the carrier wrote it, and `atMs` (epoch milliseconds) for comparisons. */
export interface Instant {
  readonly text: string
  readonly atMs: number
}

const FORM = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?Z$/

/**
 * Parses a timestamp of the carrier (DOMAIN 2.2): UTC, with a Z at the end. Common serialisers drop zeros. So the seconds may be missing,
 * and so may the fraction, which has 1 to 9 digits. Digits beyond the millisecond are cut off, not rounded. Null: the text has another form,
 * or its day or hour does not exist.
 *
 * `Date.parse` turns 30 February into a day in March, and 24:00 into the next day. To detect this, the result is compared with the text.
 */
export function parseInstant(text: unknown): Instant | null {
  if (typeof text !== 'string' || !FORM.test(text)) return null
  const atMs = Date.parse(text)
  return new Date(atMs).getUTCDate() === Number(text.slice(8, 10)) ? { text, atMs } : null
}

/**
 * Parses what people type: a time of ISO 8601 with `Z` or an offset. Returns epoch milliseconds; NaN: it is none, or its day or hour does not exist
 * (see `parseInstant`).
 */
export function parseTime(text: string): number {
  const written = Date.parse(text.replace(/(?:Z|[+-]\d\d:?\d\d)$/i, 'Z'))
  return new Date(written).getUTCDate() === Number(text.slice(8, 10)) ? Date.parse(text) : Number.NaN
}

/** Whether an instant is exact only to the second: its milliseconds are missing or zero (DOMAIN 2.2). */
export function isWhole(instant: Instant): boolean {
  return instant.atMs % 1000 === 0
}

/** Formats an instant as webhooks do, with milliseconds and a Z at the end (spec, "Webhook event payload"). */
export function formatWebhookTime(atMs: number): string {
  return new Date(atMs).toISOString()
}

/**
 * Corrects the stored or remembered time of a past event. If it is after `nowMs`, the clock was put back, so `nowMs` replaces it. Otherwise
 * the event would count as later than new events until the clock has caught up (DOMAIN 6.1).
 */
export function notAhead<T extends number | null>(atMs: T, nowMs: number): T | number {
  return atMs === null ? atMs : Math.min(atMs, nowMs)
}

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

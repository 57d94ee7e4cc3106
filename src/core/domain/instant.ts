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

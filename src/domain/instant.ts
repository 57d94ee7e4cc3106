/** A UTC instant: the carrier's text, and epoch milliseconds for comparing. */
export interface Instant {
  readonly text: string
  readonly atMs: number
}

const FORM = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?Z$/

/**
 * Parses a timestamp of the carrier (DOMAIN 2.2): UTC, with a Z at the end. It may be exact to the minute or the second, or have 1 to 9
 * digits of a fraction, because common serialisers drop zeros. Digits beyond the millisecond are cut off, not rounded. `null`: anything
 * else, including days and hours that do not exist.
 *
 * The platform would turn 30 February into a day in March, and 24:00 into the next day. So the result is compared with the text.
 */
export function parseInstant(text: unknown): Instant | null {
  if (typeof text !== 'string' || !FORM.test(text)) return null
  const atMs = Date.parse(text)
  return new Date(atMs).getUTCDate() === Number(text.slice(8, 10)) ? { text, atMs } : null
}

/** Whether an instant is exact only to the second: it has no milliseconds, or zero of them (DOMAIN 2.2). */
export function isWhole(instant: Instant): boolean {
  return instant.atMs % 1000 === 0
}

/** Formats an instant as webhooks do, with milliseconds and a Z at the end (spec, "Webhook event payload"). */
export function formatWebhookTime(atMs: number): string {
  return new Date(atMs).toISOString()
}

/** A UTC instant as the carrier writes it: the text, and the same as epoch milliseconds. */
export interface Instant {
  readonly text: string
  readonly atMs: number
}

const FORM = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{3})?Z$/

/**
 * Reads a timestamp in the spec's form: UTC, ending in Z, seconds or milliseconds. `null` for everything else, days and hours that do not
 * exist included: the platform would silently shift 30 February to March and 24:00 to the next day, so the day must be the day written.
 */
export function parseInstant(text: unknown): Instant | null {
  if (typeof text !== 'string' || !FORM.test(text)) return null
  const atMs = Date.parse(text)
  return new Date(atMs).getUTCDate() === Number(text.slice(8, 10)) ? { text, atMs } : null
}

/** Whether an instant says no more than its second: no fraction, or only zeros (DOMAIN 2.2). */
export function isWhole(instant: Instant): boolean {
  return instant.atMs % 1000 === 0
}

/** An instant in the webhook's form, with milliseconds and a trailing Z (spec, "Webhook event payload"). */
export function formatWebhookTime(atMs: number): string {
  return new Date(atMs).toISOString()
}

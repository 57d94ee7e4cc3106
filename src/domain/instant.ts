/** A UTC instant: the carrier's text, and the same as epoch milliseconds. */
export interface Instant {
  readonly text: string
  readonly atMs: number
}

const FORM = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{3})?Z$/

/**
 * Parses a timestamp in the spec's form: UTC, ending in Z, with seconds or milliseconds. `null`: anything else, including days and hours
 * that do not exist. The platform would shift 30 February to March and 24:00 to the next day, so the day is compared with the text.
 */
export function parseInstant(text: unknown): Instant | null {
  if (typeof text !== 'string' || !FORM.test(text)) return null
  const atMs = Date.parse(text)
  return new Date(atMs).getUTCDate() === Number(text.slice(8, 10)) ? { text, atMs } : null
}

/** Whether an instant is exact only to the second: it has no fraction, or only zeros (DOMAIN 2.2). */
export function isWhole(instant: Instant): boolean {
  return instant.atMs % 1000 === 0
}

/** Formats an instant as webhooks do, with milliseconds and a trailing Z (spec, "Webhook event payload"). */
export function formatWebhookTime(atMs: number): string {
  return new Date(atMs).toISOString()
}

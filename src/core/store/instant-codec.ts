import type { Instant } from '../domain/instant.ts'

/**
 * The column `time_form` says how a time is written, so that it is served as it came:
 *
 *   0          2026-03-01T10:00:00Z
 *   1          2026-03-01T10:00:00.250Z
 *   2          2026-03-01T10:00Z
 *   2000000    2026-03-01T10:00:00.25Z        two digits
 *   7000123    2026-03-01T10:00:00.2500123Z   seven digits; after the milliseconds comes 0123
 */
const SECOND = 0
const MILLISECOND = 1
const MINUTE = 2
const PER_DIGIT = 1_000_000

const MINUTE_CHARS = 'YYYY-MM-DDTHH:MM'.length
const SECOND_CHARS = 'YYYY-MM-DDTHH:MM:SS'.length
const MILLISECOND_CHARS = 'YYYY-MM-DDTHH:MM:SS.mmm'.length

/** Encodes a time with its form. `parseInstant` has accepted the text, so its length shows the form. */
export function encodeInstant({ atMs, text }: Instant): { readonly at_ms: number; readonly time_form: number } {
  return { at_ms: atMs, time_form: formOf(text) }
}

function formOf(text: string): number {
  const chars = text.length - 'Z'.length
  if (chars === MILLISECOND_CHARS) return MILLISECOND
  if (chars === SECOND_CHARS) return SECOND
  if (chars === MINUTE_CHARS) return MINUTE
  const digits = chars - SECOND_CHARS - '.'.length
  return digits * PER_DIGIT + Number(text.slice(MILLISECOND_CHARS, chars))
}

/** Restores the time exactly as it was written (DOMAIN 2.2). */
export function decodeInstant(atMs: number, form: number): Instant {
  const text = new Date(atMs).toISOString()
  if (form === MILLISECOND) return { atMs, text }
  if (form === SECOND) return { atMs, text: `${text.slice(0, SECOND_CHARS)}Z` }
  if (form === MINUTE) return { atMs, text: `${text.slice(0, MINUTE_CHARS)}Z` }
  const digits = Math.floor(form / PER_DIGIT)
  const beyond = String(form % PER_DIGIT).padStart(Math.max(0, digits - 3), '0')
  const fraction = `${text.slice(SECOND_CHARS + 1, MILLISECOND_CHARS)}${beyond}`.slice(0, digits)
  return { atMs, text: `${text.slice(0, SECOND_CHARS)}.${fraction}Z` }
}

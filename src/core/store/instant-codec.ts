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

const DAY_MS = 86_400_000
/** The beginnings of the texts of times, by their day since the epoch. */
const days = new Map<number, string>()
const DAYS_KEPT = 1000
const TWO_DIGITS = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, '0'))

/** Writes a time as `toISOString` does, which takes three times as long. Each answer and each page of the feed writes many. */
export function isoText(atMs: number): string {
  const day = Math.floor(atMs / DAY_MS)
  let date = days.get(day)
  if (date === undefined) {
    if (days.size >= DAYS_KEPT) days.clear()
    date = new Date(day * DAY_MS).toISOString().slice(0, -'HH:MM:SS.mmmZ'.length)
    days.set(day, date)
  }
  const ofDay = atMs - day * DAY_MS
  const [seconds, fraction] = [Math.floor(ofDay / 1000), ofDay % 1000]
  const minutes = Math.floor(seconds / 60)
  const time = `${TWO_DIGITS[Math.floor(minutes / 60)]}:${TWO_DIGITS[minutes % 60]}:${TWO_DIGITS[seconds % 60]}`
  return `${date}${time}.${fraction < 100 ? `0${TWO_DIGITS[fraction]}` : fraction}Z`
}

/** Restores the time exactly as it was written (DOMAIN 2.2). */
export function decodeInstant(atMs: number, form: number): Instant {
  const text = isoText(atMs)
  if (form === MILLISECOND) return { atMs, text }
  if (form === SECOND) return { atMs, text: `${text.slice(0, SECOND_CHARS)}Z` }
  if (form === MINUTE) return { atMs, text: `${text.slice(0, MINUTE_CHARS)}Z` }
  const digits = Math.floor(form / PER_DIGIT)
  const beyond = String(form % PER_DIGIT).padStart(Math.max(0, digits - 3), '0')
  const fraction = `${text.slice(SECOND_CHARS + 1, MILLISECOND_CHARS)}${beyond}`.slice(0, digits)
  return { atMs, text: `${text.slice(0, SECOND_CHARS)}.${fraction}Z` }
}

/*
 * A day in a time zone is a number: the beginning of the same date in UTC, in epoch milliseconds. So days can be compared and counted, and stay what
 * they are when the relay's time zone changes.
 */

/** In every time zone days begin at a quarter of an hour. */
export const QUARTER_MS = 900_000
export const DAY_MS = 86_400_000
/** Some weeks of quarters. */
const REMEMBERED_MAX = 4000

let last: ({ readonly format: Intl.DateTimeFormat; readonly days: Map<number, number> } & { readonly name: string }) | null = null

/** Returns the day of an instant in a time zone. */
export function dayIn(zone: string, atMs: number): number {
  if (last?.name !== zone) {
    const date = { year: 'numeric', month: '2-digit', day: '2-digit' } as const
    last = { name: zone, format: new Intl.DateTimeFormat('en-CA', { timeZone: zone, calendar: 'gregory', ...date }), days: new Map() }
  }
  const { format, days } = last
  const quarter = Math.floor(atMs / QUARTER_MS)
  const known = days.get(quarter)
  if (known !== undefined) return known
  const named = Date.parse(format.format(quarter * QUARTER_MS))
  // A year with fewer than four digits cannot be parsed.
  const day = Number.isNaN(named) ? Math.floor(atMs / DAY_MS) * DAY_MS : named
  if (days.size >= REMEMBERED_MAX) days.clear()
  days.set(quarter, day)
  return day
}

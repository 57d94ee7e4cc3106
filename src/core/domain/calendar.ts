/*
 * A day in a time zone is a number: the beginning of the same date in UTC, in epoch milliseconds. So days can be compared and counted, and stay what
 * they are when the relay's time zone changes.
 */

/** In every time zone days begin at a quarter of an hour. */
export const QUARTER_MS = 900_000
export const DAY_MS = 86_400_000
/** Some weeks of quarters. */
const REMEMBERED_MAX = 4000

/** Before it years have fewer than four digits, and days are those of UTC. */
const YEAR_1000_MS = Date.UTC(1000)

const clocks = new Map<string, Intl.DateTimeFormat>()

/** Returns what a clock in a time zone shows at an instant, to the second, as if it showed UTC. */
export function wallClockMs(zone: string, atMs: number): number {
  if (atMs < YEAR_1000_MS) return atMs
  let clock = clocks.get(zone)
  if (clock === undefined) {
    const date = { calendar: 'gregory', year: 'numeric', month: 'numeric', day: 'numeric' } as const
    const time = { hourCycle: 'h23', hour: 'numeric', minute: 'numeric', second: 'numeric' } as const
    clock = new Intl.DateTimeFormat('en-GB', { timeZone: zone, ...date, ...time })
    clocks.set(zone, clock)
  }
  const parts = new Map(clock.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]))
  const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0
  return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'))
}

let last: { readonly zone: string; readonly days: Map<number, number> } | null = null

/** Returns the day of an instant in a time zone. */
export function dayIn(zone: string, atMs: number): number {
  if (last?.zone !== zone) last = { zone, days: new Map() }
  const { days } = last
  const quarter = Math.floor(atMs / QUARTER_MS)
  const known = days.get(quarter)
  if (known !== undefined) return known
  const day = Math.floor(wallClockMs(zone, quarter * QUARTER_MS) / DAY_MS) * DAY_MS
  if (days.size >= REMEMBERED_MAX) days.clear()
  days.set(quarter, day)
  return day
}

/*
 * A day in a time zone is a number: the beginning of the same date in UTC, in epoch milliseconds. So days can be compared and counted, and stay what
 * they are when the relay's time zone changes.
 */

/** The clocks of time zones change, and days begin, at a quarter of an hour. */
export const QUARTER_MS = 900_000
export const DAY_MS = 86_400_000
/** Some weeks of quarters. */
const REMEMBERED_MAX = 4000

/** Before it years have fewer than four digits, and days are those of UTC. */
const YEAR_1000_MS = Date.UTC(1000)

/** The time zones that were asked for: the config names two, and a reload may name others. */
const clocks = new Map<string, { readonly clock: Intl.DateTimeFormat; readonly offsets: Map<number, number> }>()
const ZONES_MAX = 16

function clockOf(zone: string) {
  const known = clocks.get(zone)
  if (known !== undefined) return known
  const date = { calendar: 'gregory', year: 'numeric', month: 'numeric', day: 'numeric' } as const
  const time = { hourCycle: 'h23', hour: 'numeric', minute: 'numeric', second: 'numeric' } as const
  const made = { clock: new Intl.DateTimeFormat('en-GB', { timeZone: zone, ...date, ...time }), offsets: new Map<number, number>() }
  if (clocks.size >= ZONES_MAX) clocks.clear()
  clocks.set(zone, made)
  return made
}

/**
 * Returns what a clock in a time zone shows at an instant, to the second, as if it showed UTC. The platform takes microseconds to say it, so the offsets of
 * quarters are remembered.
 */
export function wallClockMs(zone: string, atMs: number): number {
  if (atMs < YEAR_1000_MS) return atMs
  const { clock, offsets } = clockOf(zone)
  const quarter = Math.floor(atMs / QUARTER_MS)
  let offset = offsets.get(quarter)
  if (offset === undefined) {
    const parts = new Map(clock.formatToParts(quarter * QUARTER_MS).map(({ type, value }) => [type, Number(value)]))
    const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0
    offset = Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second')) - quarter * QUARTER_MS
    if (offsets.size >= REMEMBERED_MAX) offsets.clear()
    offsets.set(quarter, offset)
  }
  return Math.floor(atMs / 1000) * 1000 + offset
}

/** Returns the day of an instant in a time zone. */
export function dayIn(zone: string, atMs: number): number {
  return Math.floor(wallClockMs(zone, atMs) / DAY_MS) * DAY_MS
}

/** No clock is further ahead of UTC. */
const AHEAD_MS = 15 * 3_600_000

/** Returns when a day begins in a time zone, epoch milliseconds: the inverse of `dayIn`. */
export function beginOfDayMs(zone: string, day: number): number {
  let atMs = day - AHEAD_MS
  while (dayIn(zone, atMs) < day) atMs += QUARTER_MS
  return atMs
}

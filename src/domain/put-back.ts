/**
 * A stored or remembered time of what has happened, as of `nowMs`. It is ahead only because the clock was put back since; left as it is, it would
 * count as later than everything to come for as long as the jump (DOMAIN 6.1).
 */
export function notAhead<T extends number | null>(atMs: T, nowMs: number): T | number {
  return atMs === null ? atMs : Math.min(atMs, nowMs)
}

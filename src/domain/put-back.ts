/**
 * A stored or remembered time of a past event, as of `nowMs`. It is ahead only because the clock was put back since; left as it is, it
 * would count as later than all times to come for as long as the jump (DOMAIN 6.1).
 */
export function notAhead<T extends number | null>(atMs: T, nowMs: number): T | number {
  return atMs === null ? atMs : Math.min(atMs, nowMs)
}

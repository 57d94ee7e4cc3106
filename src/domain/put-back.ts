/**
 * Corrects the stored or remembered time of a past event. If it is after `nowMs`, the clock was put back, so `nowMs` replaces it. Otherwise
 * the event would count as later than new events until the clock has caught up (DOMAIN 6.1).
 */
export function notAhead<T extends number | null>(atMs: T, nowMs: number): T | number {
  return atMs === null ? atMs : Math.min(atMs, nowMs)
}

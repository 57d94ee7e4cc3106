/**
 * Corrects the stored or remembered time of a past event. If it lies after `nowMs`, the clock was put back since, and it becomes `nowMs`.
 * Otherwise it would count as later than all times to come, for as long as the clock was put back (DOMAIN 6.1).
 */
export function notAhead<T extends number | null>(atMs: T, nowMs: number): T | number {
  return atMs === null ? atMs : Math.min(atMs, nowMs)
}

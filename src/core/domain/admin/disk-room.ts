import type { Tally } from './tally.ts'

/** The space on the disk of the store, in bytes. */
export interface DiskRoom {
  readonly freeBytes: number
  /** If less than this is free, pushes are refused. */
  readonly freeBytesMin: number
  readonly totalBytes: number
  readonly storeBytes: number
  readonly path: string
}

/** The code with which the reason of `/readyz` begins while the disk is full. */
export const DISK_FULL = 'disk_full'

/** Whether pushes are refused because too little is free. */
export function isDiskFull({ freeBytes, freeBytesMin }: Pick<DiskRoom, 'freeBytes' | 'freeBytesMin'>): boolean {
  return freeBytes < freeBytesMin
}

/** Long work needs this part of `freeBytesMin`. */
const WORK_NEEDS = 1 / 4

/** Whether enough is free for long work. It needs less than pushes do, because it may free the space that pushes need. */
export function hasRoomForWork({ freeBytes, freeBytesMin }: Pick<DiskRoom, 'freeBytes' | 'freeBytesMin'>): boolean {
  return freeBytes >= WORK_NEEDS * freeBytesMin
}

/** Operators are warned below this multiple of `freeBytesMin`, so that they can make room before pushes are refused. */
export const LOW_AT = 2

export function isDiskLow({ freeBytes, freeBytesMin }: Pick<DiskRoom, 'freeBytes' | 'freeBytesMin'>): boolean {
  return freeBytes < LOW_AT * freeBytesMin
}

const HOUR_MS = 3_600_000
const PACE_MS_MIN = HOUR_MS / 2
const FORESEEN_MS = 30 * 24 * HOUR_MS

/**
 * Returns when pushes will be refused if the disk goes on filling at the same speed, epoch milliseconds. Null: the disk does not fill, or will not be
 * full within 30 days, or was measured for too short a time.
 *
 * @param hours the lowest number of free bytes in each past hour, as `free`, the oldest first
 */
export function refusesFromMs({ freeBytes, freeBytesMin }: DiskRoom, hours: readonly Tally[], nowMs: number): number | null {
  const [first] = hours.flatMap(({ fromMs, counts }) =>
    counts.free === undefined ? [] : [{ endMs: fromMs + HOUR_MS, freeBytes: counts.free }],
  )
  if (first === undefined) return null
  const overMs = nowMs - first.endMs
  const goneBytes = first.freeBytes - freeBytes
  if (overMs < PACE_MS_MIN || goneBytes <= 0) return null
  const inMs = (Math.max(0, freeBytes - freeBytesMin) * overMs) / goneBytes
  return inMs > FORESEEN_MS ? null : nowMs + inMs
}

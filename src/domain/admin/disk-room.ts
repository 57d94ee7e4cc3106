import type { Tally } from './tally.ts'

/** The room on the disk of the store, in bytes. */
export interface DiskRoom {
  readonly freeBytes: number
  /** Below this, pushes are refused. */
  readonly freeBytesMin: number
  readonly totalBytes: number
  /** The size of the store. */
  readonly storeBytes: number
  readonly path: string
}

/** The reason that `/readyz` gives, before the colon, while the disk is full. */
export const DISK_FULL = 'disk_nearly_full'

/** Whether pushes are refused because there is too little room. */
export function isDiskFull({ freeBytes, freeBytesMin }: Pick<DiskRoom, 'freeBytes' | 'freeBytesMin'>): boolean {
  return freeBytes < freeBytesMin
}

/** Work that frees space continues until less than this part of `freeBytesMin` is free. */
const WORK_NEEDS = 1 / 4

/** Whether there is room for long work. Long work continues while pushes are refused, because it may free the room that pushes need. */
export function hasRoomForWork({ freeBytes, freeBytesMin }: Pick<DiskRoom, 'freeBytes' | 'freeBytesMin'>): boolean {
  return freeBytes >= WORK_NEEDS * freeBytesMin
}

/** Operators are warned when less than this many times the limit is free. */
const LOW_AT = 2

/** Whether somebody should make room, before pushes are refused. */
export function isDiskLow({ freeBytes, freeBytesMin }: Pick<DiskRoom, 'freeBytes' | 'freeBytesMin'>): boolean {
  return freeBytes < LOW_AT * freeBytesMin
}

const HOUR_MS = 3_600_000
const PACE_MS_MIN = HOUR_MS / 2
const FORESEEN_MS = 30 * 24 * HOUR_MS

/**
 * When pushes will be refused if the disk fills up at the same speed, epoch milliseconds. Null: it does not fill, or it fills too slowly,
 * or for too short a time to tell.
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

import { LRUCache } from 'lru-cache'
import type { LatestEntry, ParcelState } from '../../domain/history/parcel-state.ts'

export interface ParcelMemory {
  get(parcelId: number): ParcelState | null
  set(state: ParcelState): void
  delete(parcelId: number): void
  clear(): void
}

/** The position of each number in a parcel's row. */
const WATCHED_AT = 0
const FIRST_PUSHED_AT = 1
const REVIVED_AT = 2
const ENTRY_COUNT = 3
const LATEST_AT = 4
const HEARD_AT = 5
const CHECKED_AT = 6
const FAILURES = 7
const NEXT_POLL_AT = 8
const FULL = 9
const LATEST_LEARNT_AT = 10
const COLUMNS = 11

/**
 * Caches up to `max` parcels in typed arrays, which the garbage collector does not scan. With an object for each parcel, each push would
 * replace an object that is a few seconds old. At that age, objects are in the old generation of the garbage collector, and collecting that
 * generation pauses the writer.
 */
export function createParcelMemory(max: number): ParcelMemory {
  const rows = new LRUCache<number, number>({ max })
  const numbers = new Float64Array(max * COLUMNS)
  const statuses = Array.from({ length: max }, () => '')
  /** Rows freed by deleted parcels. */
  let free: number[] = []
  const stopped = Array.from({ length: max }, (): ParcelState['stopped'] => null)

  const orNull = (at: number): number | null => {
    const value = numbers[at] ?? Number.NaN
    return Number.isNaN(value) ? null : value
  }
  const number = (at: number): number => numbers[at] ?? 0
  const latestIn = (row: number, atMs: number): LatestEntry => {
    const status = statuses[row] ?? ''
    const learntAtMs = orNull(row * COLUMNS + LATEST_LEARNT_AT)
    return learntAtMs === null ? { status, atMs } : { status, atMs, learntAtMs }
  }

  return {
    get(parcelId) {
      const row = rows.get(parcelId)
      if (row === undefined) return null
      const from = row * COLUMNS
      const latestAtMs = orNull(from + LATEST_AT)
      return {
        parcelId,
        watchedAtMs: orNull(from + WATCHED_AT),
        firstPushedAtMs: orNull(from + FIRST_PUSHED_AT),
        activatedAtMs: number(from + REVIVED_AT),
        entryCount: number(from + ENTRY_COUNT),
        latest: latestAtMs === null ? null : latestIn(row, latestAtMs),
        lastSeenAtMs: orNull(from + HEARD_AT),
        checkedAtMs: orNull(from + CHECKED_AT),
        failures: number(from + FAILURES),
        nextPollAtMs: orNull(from + NEXT_POLL_AT),
        stopped: stopped[row] ?? null,
        full: number(from + FULL) === 1,
      }
    },
    set(state) {
      let row = rows.get(state.parcelId)
      if (row === undefined) {
        // If no row was freed, rows 0 to size - 1 are in use.
        row = free.pop() ?? (rows.size < max ? rows.size : (rows.pop() ?? 0))
        rows.set(state.parcelId, row)
      }
      const from = row * COLUMNS
      numbers[from + WATCHED_AT] = state.watchedAtMs ?? Number.NaN
      numbers[from + FIRST_PUSHED_AT] = state.firstPushedAtMs ?? Number.NaN
      numbers[from + REVIVED_AT] = state.activatedAtMs
      numbers[from + ENTRY_COUNT] = state.entryCount
      numbers[from + LATEST_AT] = state.latest?.atMs ?? Number.NaN
      numbers[from + LATEST_LEARNT_AT] = state.latest?.learntAtMs ?? Number.NaN
      numbers[from + HEARD_AT] = state.lastSeenAtMs ?? Number.NaN
      numbers[from + CHECKED_AT] = state.checkedAtMs ?? Number.NaN
      numbers[from + FAILURES] = state.failures
      numbers[from + NEXT_POLL_AT] = state.nextPollAtMs ?? Number.NaN
      numbers[from + FULL] = state.full ? 1 : 0
      statuses[row] = state.latest?.status ?? ''
      stopped[row] = state.stopped
    },
    delete(parcelId) {
      const row = rows.get(parcelId)
      if (row === undefined) return
      rows.delete(parcelId)
      free.push(row)
    },
    clear() {
      free = []
      rows.clear()
    },
  }
}

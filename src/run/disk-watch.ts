import { AppError } from '../domain/errors.ts'
import type { Log } from '../flow/ports.ts'
import type { GroupCommit } from './group-commit.ts'

export interface DiskState {
  readonly freeBytes: number
  /** The log of changes beside the database. */
  readonly logBytes: number
}

/** Whether the disk is short of room, in memory that threads share: 1 if it is. */
export type Shortage = Int32Array

export function createShortage(): Shortage {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
}

export function isShortIn(shortage: Shortage): boolean {
  return Atomics.load(shortage, 0) === 1
}

export interface DiskWatchPorts {
  readonly measure: () => Promise<DiskState>
  /** Where it is said for other threads. */
  readonly shortage: Shortage
  readonly log: Pick<Log, 'warn' | 'info'>
}

export interface DiskWatchOptions {
  /** With less than this, nothing new is taken: a disk that is full in earnest fails in worse ways. */
  readonly freeBytesMin: number
  /** Above this the log says so: something keeps an old view of the store open, such as a forgotten query. */
  readonly logBytesWarn: number
}

export interface DiskWatch {
  /** Measures now. Never throws. */
  check(): Promise<void>
  state(): DiskState
  isShort(): boolean
}

const RETRY_AFTER_MS = 5000

/** Knows whether the disk has room, as of the last look. */
export function createDiskWatch({ measure, shortage, log }: DiskWatchPorts, { freeBytesMin, logBytesWarn }: DiskWatchOptions): DiskWatch {
  let state: DiskState = { freeBytes: Number.POSITIVE_INFINITY, logBytes: 0 }
  let measurable = true
  const isShort = ({ freeBytes }: DiskState) => freeBytes < freeBytesMin
  const isLong = ({ logBytes }: DiskState) => logBytes > logBytesWarn

  function tell(before: DiskState): void {
    const { freeBytes, logBytes } = state
    if (isShort(state) && !isShort(before))
      log.warn({ freeBytes, freeBytesMin }, 'the disk is nearly full: pushes are answered 503 until there is room; reads go on')
    if (!isShort(state) && isShort(before)) log.info({ freeBytes }, 'the disk has room again: pushes are taken')
    if (isLong(state) && !isLong(before))
      log.warn({ logBytes, logBytesWarn }, 'the log of changes grows: some program keeps an old view of the store open')
  }

  return {
    async check() {
      try {
        const before = state
        state = await measure()
        measurable = true
        Atomics.store(shortage, 0, isShort(state) ? 1 : 0)
        tell(before)
      } catch (error) {
        // What was known last goes on: writing itself will tell.
        if (measurable) log.warn({ err: error }, 'the room on the disk cannot be measured')
        measurable = false
      }
    },
    state: () => state,
    isShort: () => isShortIn(shortage),
  }
}

/** Looks again and again. `stop` leaves nothing running. */
export function startLooking(watch: Pick<DiskWatch, 'check'>, everyMs: number): { readonly stop: () => void } {
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const again = () => {
    timer = setTimeout(() => void watch.check().then(() => (stopped ? undefined : again())), everyMs)
    timer.unref()
  }
  again()
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

/** Takes observations only while the disk has room. */
export function refuseWhenShort(recorder: GroupCommit, disk: Pick<DiskWatch, 'isShort'>): GroupCommit {
  return {
    ...recorder,
    submit: (incoming) =>
      disk.isShort()
        ? Promise.reject(
            new AppError('storage_unavailable', 'There is too little room left to store this. Send it again later.', {
              retryAfterMs: RETRY_AFTER_MS,
            }),
          )
        : recorder.submit(incoming),
  }
}

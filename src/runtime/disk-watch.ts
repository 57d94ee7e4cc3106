import { AppError } from '../domain/errors.ts'
import type { Recorder } from '../flow/history/ports.ts'
import type { Log } from '../flow/ports.ts'

export interface DiskState {
  readonly freeBytes: number
  /** The log of changes beside the database. */
  readonly logBytes: number
  /** A file of the store that is no longer the one that is open; null: none. */
  readonly lost: { readonly name: string; readonly fate: 'gone' | 'replaced' } | null
}

/** Why nothing new can be taken: there is too little room, or what was written now would be in no file that anybody finds again. */
export type DiskTrouble = 'short' | 'lost'

/** The trouble with the disk, in memory that threads share. */
export type DiskSign = Int32Array

const SIGNS: readonly (DiskTrouble | null)[] = [null, 'short', 'lost']

export function createDiskSign(): DiskSign {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
}

export function troubleOn(sign: DiskSign): DiskTrouble | null {
  return SIGNS[Atomics.load(sign, 0)] ?? null
}

export interface DiskWatchPorts {
  readonly measure: () => Promise<DiskState>
  /** Where it is said for other threads. */
  readonly sign: DiskSign
  readonly log: Pick<Log, 'error' | 'warn' | 'info'>
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
  trouble(): DiskTrouble | null
}

/** Knows whether the disk has room, and the store its files, as of the last look. */
export function createDiskWatch({ measure, sign, log }: DiskWatchPorts, { freeBytesMin, logBytesWarn }: DiskWatchOptions): DiskWatch {
  let state: DiskState = { freeBytes: Number.POSITIVE_INFINITY, logBytes: 0, lost: null }
  let measurable = true
  const isShort = ({ freeBytes }: DiskState) => freeBytes < freeBytesMin
  const isLong = ({ logBytes }: DiskState) => logBytes > logBytesWarn
  const troubleOf = (seen: DiskState) => (seen.lost !== null ? 'lost' : isShort(seen) ? 'short' : null)

  function tell(before: DiskState): void {
    const { freeBytes, logBytes, lost } = state
    if (lost !== null && before.lost === null)
      log.error(
        { file: lost.name, fate: lost.fate },
        'a file of the store was taken away or replaced while it is open: nothing is written any more, and pushes are answered 503. Put it back, or restore a backup',
      )
    if (lost === null && before.lost !== null) log.info({ file: before.lost.name }, 'the file of the store is back: pushes are taken')
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
        Atomics.store(sign, 0, SIGNS.indexOf(troubleOf(state)))
        tell(before)
      } catch (error) {
        // What was known last goes on: writing itself will tell.
        if (measurable) log.warn({ err: error }, 'the room on the disk cannot be measured')
        measurable = false
      }
    },
    state: () => state,
    trouble: () => troubleOn(sign),
  }
}

/** Looks again and again. `stop` leaves nothing running. */
export function startDiskChecks(watch: Pick<DiskWatch, 'check'>, everyMs: number): { readonly stop: () => void } {
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

const RETRY_AFTER_MS = 5000
const REFUSALS: Readonly<Record<DiskTrouble, string>> = {
  short: 'There is too little room left to store this. Send it again later.',
  lost: 'The files of the store were taken away or replaced. Send it again later.',
}

function refusalOf(trouble: DiskTrouble): AppError {
  return new AppError('storage_unavailable', REFUSALS[trouble], { retryAfterMs: RETRY_AFTER_MS })
}

/** Takes observations only while the disk has room and the store its files. */
export function refuseInTrouble(recorder: Recorder, disk: Pick<DiskWatch, 'trouble'>): Recorder {
  return {
    ...recorder,
    submit(incoming) {
      const trouble = disk.trouble()
      return trouble === null ? recorder.submit(incoming) : Promise.reject(refusalOf(trouble))
    },
  }
}

type Verbs<V> = { readonly [Name in keyof V]: (...args: never[]) => Promise<unknown> }

/** Verbs that write nothing while the store has lost a file: what they wrote would be gone with the process. */
export function refuseWhenLost<V extends Verbs<V>>(verbs: V, disk: Pick<DiskWatch, 'trouble'>): V {
  return new Proxy(verbs, {
    get(target, name) {
      const verb: unknown = Reflect.get(target, name)
      if (typeof verb !== 'function') return verb
      return (...args: never[]): unknown =>
        disk.trouble() === 'lost' ? Promise.reject(refusalOf('lost')) : Reflect.apply(verb, target, args)
    },
  })
}

import { AppError, NO_ROOM_TEXT } from '../domain/errors.ts'
import type { Log, Recorder } from '../flow/ports.ts'

/** A write-ahead log of more bytes is a problem: another program holds a long read transaction. */
export const LOG_BYTES_WARN = 256 * 1024 * 1024

export interface DiskState {
  readonly freeBytes: number
  readonly diskBytes: number
  readonly storeBytes: number
  /** The size of the write-ahead log. */
  readonly logBytes: number
  /** Whether the store's lock file was deleted or replaced since the last look. Absent: it was not. */
  readonly isRelocked?: boolean
  /** A file of the store that was deleted or replaced while the relay had it open. Null: every file is there. */
  readonly lost: { readonly name: string; readonly fate: 'gone' | 'replaced' } | null
}

/**
 * Why pushes are refused. `short`: there is too little disk space. `lost`: a file of the store is lost, so writes to it would vanish.
 * `moving`: the relay is switching to another store.
 */
export type DiskTrouble = 'short' | 'lost' | 'moving'

/** The current `DiskTrouble`, in memory that all threads share. */
export type DiskSign = Int32Array

const MOVING = 1

const SIGNS: readonly (DiskTrouble | null)[] = [null, 'short', 'lost']

export function createDiskSign(): DiskSign {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT))
}

/** Makes all threads refuse pushes and other writes from now on, because the relay is switching to another store. */
export function showMoving(sign: DiskSign): void {
  Atomics.store(sign, MOVING, 1)
}

export function troubleOn(sign: DiskSign): DiskTrouble | null {
  if (Atomics.load(sign, MOVING) === 1) return 'moving'
  return SIGNS[Atomics.load(sign, 0)] ?? null
}

export interface DiskWatchPorts {
  readonly measure: () => Promise<DiskState>
  /** Set at each look at the disk. The other threads read it. */
  readonly sign: DiskSign
  readonly log: Pick<Log, 'error' | 'warn' | 'info'>
}

export interface DiskWatchOptions {
  /** With less free space than this, pushes are refused, because a disk that is entirely full fails in worse ways. */
  readonly freeBytesMin: number
  /** A write-ahead log above this size is reported. It means that another program holds a long read transaction on the store. */
  readonly logBytesWarn: number
}

export type DiskWatch = ReturnType<typeof createDiskWatch>

/** The state before the first look at the disk. A store on PostgreSQL always has this state. */
export const UNMEASURED: DiskState = { freeBytes: Number.POSITIVE_INFINITY, diskBytes: 0, storeBytes: 0, logBytes: 0, lost: null }

export function createDiskWatch({ measure, sign, log }: DiskWatchPorts, { freeBytesMin, logBytesWarn }: DiskWatchOptions) {
  let state: DiskState = UNMEASURED
  let measurable = true
  const isShort = ({ freeBytes }: DiskState) => freeBytes < freeBytesMin
  const isLong = ({ logBytes }: DiskState) => logBytes > logBytesWarn
  const troubleOf = (seen: DiskState) => (seen.lost !== null ? 'lost' : isShort(seen) ? 'short' : null)

  function logChanges(before: DiskState): void {
    const { freeBytes, logBytes, lost } = state
    if (state.isRelocked === true)
      log.warn({}, 'the lock file of the store was deleted or replaced: the relay locks the new one, or ends if another relay holds it')
    if (lost !== null && before.lost === null)
      log.error(
        { file: lost.name, fate: lost.fate },
        'a file of the store was deleted or replaced: the relay writes nothing and answers pushes with 503. Put the file back, or restore a backup',
      )
    if (lost === null && before.lost !== null)
      log.info({ file: before.lost.name }, 'the file of the store is back: the relay takes pushes again')
    if (isShort(state) && !isShort(before))
      log.warn({ freeBytes, freeBytesMin }, 'the disk has too little room (limits.freeSpaceMin): pushes get 503 until it has more')
    if (!isShort(state) && isShort(before)) log.info({ freeBytes }, 'the disk has room again: the relay takes pushes')
    if (isLong(state) && !isLong(before))
      log.warn({ logBytes, logBytesWarn }, 'the write-ahead log keeps growing: another program holds a long read transaction on the store')
  }

  return {
    /** Looks at the disk now. Never throws. */
    async check() {
      try {
        const before = state
        state = await measure()
        measurable = true
        Atomics.store(sign, 0, SIGNS.indexOf(troubleOf(state)))
        logChanges(before)
      } catch (error) {
        // Keep the last measurement. If the disk itself has failed, a write will report it.
        if (measurable) log.warn({ err: error }, 'cannot measure the free disk space')
        measurable = false
      }
    },
    state: (): DiskState => state,
    trouble: (): DiskTrouble | null => troubleOn(sign),
  }
}

const RETRY_AFTER_MS = 5000
const MOVING_RETRY_AFTER_MS = 2000
const REFUSALS: Readonly<Record<DiskTrouble, string>> = {
  short: NO_ROOM_TEXT,
  lost: 'A file of the store was deleted or replaced. It has to be put back, or a backup restored.',
  moving: 'The store is being moved. Try again in a moment.',
}

function refusalOf(trouble: DiskTrouble): AppError {
  return new AppError('storage_unavailable', REFUSALS[trouble], {
    retryAfterMs: trouble === 'moving' ? MOVING_RETRY_AFTER_MS : RETRY_AFTER_MS,
  })
}

/** Returns a function that throws `storage_unavailable` while there is any trouble. */
export function admitOutsideTrouble(disk: Pick<DiskWatch, 'trouble'>): () => void {
  return () => {
    const trouble = disk.trouble()
    if (trouble !== null) throw refusalOf(trouble)
  }
}

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

/** Makes all calls of `verbs` reject while a file of the store is lost or the store is moving. Otherwise their writes would vanish. */
export function refuseWhenLost<V extends Verbs<V>>(verbs: V, disk: Pick<DiskWatch, 'trouble'>): V {
  return new Proxy(verbs, {
    get(target, name) {
      const verb: unknown = Reflect.get(target, name)
      if (typeof verb !== 'function') return verb
      return (...args: never[]): unknown => {
        const trouble = disk.trouble()
        return trouble === 'lost' || trouble === 'moving' ? Promise.reject(refusalOf(trouble)) : Reflect.apply(verb, target, args)
      }
    },
  })
}

import { AppError } from '../domain/errors.ts'
import type { Recorder } from '../flow/history/ports.ts'
import type { Log } from '../flow/ports.ts'

export interface DiskState {
  readonly freeBytes: number
  readonly diskBytes: number
  readonly storeBytes: number
  /** Size of the write-ahead log. */
  readonly logBytes: number
  /** Whether the store's lock file was replaced since the last look; absent: no. */
  readonly isRelocked?: boolean
  /** A file of the store that was deleted or replaced while open; null: there is none. */
  readonly lost: { readonly name: string; readonly fate: 'gone' | 'replaced' } | null
}

/**
 * Why pushes are refused. `short`: there is too little disk space. `lost`: a file of the store is lost, so writes to it would vanish.
 * `moving`: the relay is switching to another store.
 */
export type DiskTrouble = 'short' | 'lost' | 'moving'

/** The present trouble, in memory that the threads share. It comes from the last look at the disk, and from moves of the store. */
export type DiskSign = Int32Array

const MOVING = 1

const SIGNS: readonly (DiskTrouble | null)[] = [null, 'short', 'lost']

export function createDiskSign(): DiskSign {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT))
}

/** Makes the relay refuse pushes and all other writes from now on, because another store replaces this one. */
export function showMoving(sign: DiskSign): void {
  Atomics.store(sign, MOVING, 1)
}

export function troubleOn(sign: DiskSign): DiskTrouble | null {
  if (Atomics.load(sign, MOVING) === 1) return 'moving'
  return SIGNS[Atomics.load(sign, 0)] ?? null
}

export interface DiskWatchPorts {
  readonly measure: () => Promise<DiskState>
  /** Set at each look. The other threads read it. */
  readonly sign: DiskSign
  readonly log: Pick<Log, 'error' | 'warn' | 'info'>
}

export interface DiskWatchOptions {
  /** With less free space pushes are refused. A disk that is full would fail in worse ways. */
  readonly freeBytesMin: number
  /** A write-ahead log above this size is reported. Some program, such as a forgotten query, holds a long read transaction. */
  readonly logBytesWarn: number
}

export interface DiskWatch {
  /** Measures now. Never throws. */
  check(): Promise<void>
  state(): DiskState
  trouble(): DiskTrouble | null
}

/** The state before the first look, and of every store on a server. */
export const UNMEASURED: DiskState = { freeBytes: Number.POSITIVE_INFINITY, diskBytes: 0, storeBytes: 0, logBytes: 0, lost: null }

/** Watches whether the disk has room and the store has its files. */
export function createDiskWatch({ measure, sign, log }: DiskWatchPorts, { freeBytesMin, logBytesWarn }: DiskWatchOptions): DiskWatch {
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
      log.warn({ freeBytes, freeBytesMin }, 'the disk is nearly full: the relay answers pushes with 503 until there is room; reads go on')
    if (!isShort(state) && isShort(before)) log.info({ freeBytes }, 'the disk has room again: the relay takes pushes')
    if (isLong(state) && !isLong(before))
      log.warn({ logBytes, logBytesWarn }, 'the write-ahead log keeps growing: another program holds a long read transaction on the store')
  }

  return {
    async check() {
      try {
        const before = state
        state = await measure()
        measurable = true
        Atomics.store(sign, 0, SIGNS.indexOf(troubleOf(state)))
        logChanges(before)
      } catch (error) {
        // Keep the last measurement. If the disk is in trouble, a write will fail and show it.
        if (measurable) log.warn({ err: error }, 'cannot measure the free disk space')
        measurable = false
      }
    },
    state: () => state,
    trouble: () => troubleOn(sign),
  }
}

const RETRY_AFTER_MS = 5000
const MOVING_RETRY_AFTER_MS = 2000
const REFUSALS: Readonly<Record<DiskTrouble, string>> = {
  short: 'The disk of the store is nearly full. Try again later.',
  lost: 'A file of the store was deleted or replaced. It has to be put back, or a backup restored.',
  moving: 'The store is being moved. Try again in a moment.',
}

function refusalOf(trouble: DiskTrouble): AppError {
  return new AppError('storage_unavailable', REFUSALS[trouble], {
    retryAfterMs: trouble === 'moving' ? MOVING_RETRY_AFTER_MS : RETRY_AFTER_MS,
  })
}

/** Returns a function that throws `storage_unavailable` while pushes are refused because of the disk or a move. */
export function admitOutsideTrouble(disk: Pick<DiskWatch, 'trouble'>): () => void {
  return () => {
    const trouble = disk.trouble()
    if (trouble !== null) throw refusalOf(trouble)
  }
}

/** Accepts observations only while the disk has room and the store has its files. */
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

/** Refuses all calls while a file of the store is lost, because their writes would vanish, and while the store is moving. */
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

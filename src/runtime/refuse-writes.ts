import { AppError } from '../domain/errors.ts'
import type { Recorder } from '../flow/history/ports.ts'
import type { DiskTrouble, DiskWatch } from './disk-watch.ts'

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

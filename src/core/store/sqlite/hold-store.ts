import { openingFailure, refuseIrregularFiles } from './file.ts'
import { followLinks, refuseSecondName } from './identity.ts'
import { lockStore, type StoreLock } from './lock.ts'

/** A store that only this process may write to or replace, until the lock is released. */
export interface HeldStore {
  /** The file behind all symbolic links. The lock, the WAL, the key and the tombstones are beside this file. */
  readonly path: string
  readonly lock: StoreLock
}

/**
 * Makes this process the only one that may write to a store or replace its files, under whatever name it is given. The relay and every command
 * that opens a store begin with this. `admit` looks at the file before the lock is taken, and throws if the work may not go on. Throws
 * `StoreInUse` while another process holds the store.
 */
export function holdStore(given: string, admit: (path: string) => void): HeldStore {
  const path = behindLinks(given)
  try {
    refuseIrregularFiles(path)
    admit(path)
    refuseSecondName(path)
    return { path, lock: lockStore(path) }
  } catch (error) {
    throw openingFailure(path, error)
  }
}

/** Like `followLinks`, with an error that names the path, the cause and the remedy. */
export function behindLinks(given: string): string {
  try {
    return followLinks(given)
  } catch (error) {
    throw openingFailure(given, error)
  }
}

import type { FindConcerns, KeepLook } from '../../console/problems/concern.ts'
import type { StorageState } from '../../core/domain/history/erased.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { readStorageState } from './clean-storage.ts'
import { concernsOfStorage } from './erasure.rules.ts'

export function erasureProblems({ path, shared }: Pick<Relay, 'path' | 'shared'>, keep: KeepLook): FindConcerns {
  return keep(async () => concernsOfStorage(shared === null ? storageState(path) : CLEAN))
}

const CLEAN: StorageState = { state: 'clean' }

/** That the file cannot be read is told as a store that is not ready. */
function storageState(path: string): StorageState {
  try {
    return readStorageState(path)
  } catch {
    return CLEAN
  }
}

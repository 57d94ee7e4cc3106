import type { FindConcerns, KeepLook } from '../../console/problems/concern.ts'
import type { ConcernDescriptions } from '../../console/problems/concern-kinds.ts'
import type { StorageState } from '../../core/domain/history/erased.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { readStorageState } from './clean-storage.ts'
import { concernsOfStorage } from './erasure.rules.ts'

export const ERASURE_KINDS = {
  erasure_pending: { canWait: true, runbook: ['the-store-may-hold-erased-data', 'the store may hold erased data'] },
} satisfies ConcernDescriptions

declare module '../../console/problems/concern-kinds.ts' {
  interface ConcernKinds extends Readonly<Record<keyof typeof ERASURE_KINDS, unknown>> {}
}

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

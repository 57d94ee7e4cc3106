import type { ManageBackups } from './backups/manage-backups.ts'
import type { Check } from './check/manage-check.ts'
import type { ManageErasures } from './erasure/manage-erasures.ts'
import type { TombstoneKeyKeeper } from './erasure/tombstone-key.ts'
import type { ManageJobs } from './jobs/manage-jobs.ts'
import type { ManageMoves } from './moving/manage-moves.ts'
import type { ManageRebuild } from './rebuild/manage-rebuild.ts'
import type { RefusedPushesKeeper } from './refusals/refused-pushes.ts'
import type { ManageRetention } from './retention/manage-retention.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly check: Check
    readonly manageBackups: Pick<ManageBackups, 'list' | 'start' | 'progressOf'>
    readonly manageErasures: ManageErasures
    readonly manageJobs: ManageJobs
    readonly manageRebuild: ManageRebuild
    readonly manageRetention: ManageRetention
    readonly moves: Pick<ManageMoves, 'start' | 'progressOf'>
  }
}

declare module '../core/wiring/relay.ts' {
  interface Relay {
    readonly backups: ManageBackups
    readonly refused: RefusedPushesKeeper
    readonly tombstoneKey: TombstoneKeyKeeper
  }
}

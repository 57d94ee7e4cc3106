import type { ErasureRules } from '../core/domain/history/erased.ts'
import type { createBackups } from './backups/backups.tx.ts'
import type { ManageBackups } from './backups/manage-backups.ts'
import type { Check } from './check/running-check.ts'
import type { createErase } from './erasure/erase.tx.ts'
import type { ManageErasures } from './erasure/manage-erasures.ts'
import type { TombstoneKeyKeeper } from './erasure/tombstone-key.ts'
import type { ManageInbox } from './inbox/manage-inbox.ts'
import type { createReprocess } from './inbox/reprocess.tx.ts'
import type { createJobs } from './jobs/jobs.tx.ts'
import type { ManageJobs } from './jobs/manage-jobs.ts'
import type { ManageMoves } from './moving/manage-moves.ts'
import type { ManageRebuild } from './rebuild/rebuild.routes.ts'
import type { createKeepRefusal, ListRefusals } from './refusals/kept-refusals.ts'
import type { ReplayMany } from './replay/manage-replays.ts'
import type { createTellRestores } from './restore/restores.tx.ts'
import type { ManageRetention } from './retention/manage-retention.ts'
import type { Retention } from './retention/retention.rules.ts'
import type { createPrune } from './retention/retention.tx.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly check: Check
    readonly manageBackups: Pick<ManageBackups, 'list' | 'start' | 'progressOf'>
    readonly manageErasures: ManageErasures
    readonly manageInbox: ManageInbox
    readonly manageJobs: ManageJobs
    readonly manageRebuild: ManageRebuild
    readonly manageRetention: ManageRetention
    readonly refusals: ListRefusals
    readonly replayMany: ReplayMany
    readonly moves: Pick<ManageMoves, 'start' | 'progressOf'>
  }
}

declare module '../core/wiring/relay.ts' {
  interface Relay {
    readonly backups: ManageBackups
    readonly tombstoneKey: TombstoneKeyKeeper
  }
}

declare module '../core/flow/write-side.ts' {
  interface WriteSide
    extends ReturnType<typeof createBackups>,
      ReturnType<typeof createErase>,
      ReturnType<typeof createJobs>,
      ReturnType<typeof createKeepRefusal>,
      ReturnType<typeof createPrune>,
      ReturnType<typeof createReprocess>,
      ReturnType<typeof createTellRestores> {
    useTombstoneKey(key: Uint8Array): Promise<void>
    /** Changes the time after which an erased identifier may belong to a new parcel. */
    adjustErasure(rules: ErasureRules): Promise<void>
    /** Changes how long data is kept, and from which age on events are not recorded. Takes effect with the next batch. */
    adjustRetention(retention: Retention): Promise<void>
  }
}

import type { EnableOperator, TestOperator } from '../../console/events/operator-endpoint.ts'
import type { OperationQueries } from '../../console/overview/operation-queries.ts'
import type { Overview } from '../../console/overview/overview.ts'
import type { ManageBackups } from '../../upkeep/backups/manage-backups.ts'
import type { Check } from '../../upkeep/check/manage-check.ts'
import type { ManageErasures } from '../../upkeep/erasure/manage-erasures.ts'
import type { ManageJobs } from '../../upkeep/jobs/manage-jobs.ts'
import type { ManageMoves } from '../../upkeep/moving/manage-moves.ts'
import type { ManageRebuild } from '../../upkeep/rebuild/manage-rebuild.ts'
import type { ManageRetention } from '../../upkeep/retention/manage-retention.ts'
import type { ManageSecrets } from '../../upkeep/secrets/manage-secrets.ts'
import type { Replica } from '../domain/admin/replica.ts'
import type { ManageInbox } from '../flow/admin/inbox/manage-inbox.ts'
import type { WatchListReport, WatchListRequest } from '../flow/admin/parcels/import-watches.ts'
import type { ParcelCommands } from '../flow/admin/parcels/parcel-commands.ts'
import type { ParcelQueries } from '../flow/admin/parcels/parcel-queries.ts'
import type { ReloadConfig } from '../flow/admin/reload-config.ts'
import type { ManageDeliveries } from '../flow/delivery/manage-deliveries.ts'
import type { ManageEndpoints } from '../flow/delivery/manage-endpoints.ts'
import type { Upstream } from '../flow/polling/upstream.ts'
import type { Relay } from '../flow/relay.ts'

/** What the routes under /relay and the pages of the portal call. A row names those it uses; a page takes them: `Pick<UseCases, 'manageJobs'>`. */
export interface UseCases extends Pick<Relay, 'clock'> {
  readonly check: Check
  readonly enableOperator: EnableOperator['enable']
  readonly listReplicas: () => Promise<readonly Replica[]>
  readonly lookAtParcels: ParcelQueries
  readonly manageBackups: Pick<ManageBackups, 'list' | 'start' | 'progressOf'>
  readonly manageDeliveries: ManageDeliveries
  readonly manageEndpoints: ManageEndpoints
  readonly manageErasures: ManageErasures
  readonly manageInbox: ManageInbox
  readonly manageJobs: ManageJobs
  readonly manageParcels: ParcelCommands
  readonly manageRebuild: ManageRebuild
  readonly manageRetention: ManageRetention
  readonly manageSecrets: ManageSecrets
  readonly moves: Pick<ManageMoves, 'start' | 'progressOf'>
  readonly operations: OperationQueries
  readonly overview: Overview
  readonly reloadConfig: ReloadConfig
  /** The name of the replica that answers. */
  readonly replica: string
  readonly testOperator: TestOperator
  readonly upstream: Pick<Upstream, 'read'>
  readonly watchList: (request: WatchListRequest) => Promise<WatchListReport>
}

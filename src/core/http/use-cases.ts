import type { ManageDeliveries } from '../flow/delivery/manage-deliveries.ts'
import type { ManageEndpoints } from '../flow/delivery/manage-endpoints.ts'
import type { Upstream } from '../flow/polling/upstream.ts'
import type { ReloadConfig } from '../flow/ports.ts'
import type { Relay } from '../flow/relay-part.ts'

/**
 * What the routes under /relay and the pages of the portal call. A row names those it uses; a page takes them: `Pick<UseCases, 'manageInbox'>`. Each
 * wing adds its own to this interface (`console/console-use-cases.ts`, `upkeep/upkeep-use-cases.ts`, `server/server-use-cases.ts`).
 */
export interface UseCases extends Pick<Relay, 'clock'> {
  readonly manageDeliveries: ManageDeliveries
  readonly manageEndpoints: ManageEndpoints
  readonly reloadConfig: ReloadConfig
  /** The name of the replica that answers. */
  readonly replica: string
  readonly upstream: Pick<Upstream, 'read'>
}

import type { TallyFlush } from '../core/domain/admin/tally.ts'
import type { Posted } from '../core/flow/write-side.ts'
import type { OperationQueries } from './audit/operations.routes.ts'
import type { EnableOperator, Operator, TestOperator } from './events/operator.routes.ts'
import type { Unstored } from './events/unstored.ts'
import type { Overview } from './overview/overview.ts'
import type { LookBack } from './parcels/look-back.ts'
import type { ParcelCommands, WatchListReport, WatchListRequest } from './parcels/parcel-commands.ts'
import type { ParcelQueries } from './parcels/parcel-queries.ts'
import type { Down, TroubleBegun, TroubleEnded } from './problems/trouble.ts'
import type { StoredRefused } from './refused/refused-pushes.rules.ts'
import type { RefusedPushesKeeper } from './refused/refused-pushes.ts'
import type { ManageSecrets } from './secrets/manage-secrets.ts'
import type { Tallies } from './tallies/tallies.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly enableOperator: EnableOperator['enable']
    readonly lookAtParcels: ParcelQueries
    readonly manageParcels: ParcelCommands
    readonly manageSecrets: ManageSecrets
    /** What the relay knew of a parcel at a time. `insight/` answers. */
    readonly lookBack: LookBack
    readonly operations: OperationQueries
    readonly overview: Overview
    readonly testOperator: TestOperator
    readonly watchList: (request: WatchListRequest) => Promise<WatchListReport>
  }
}

declare module '../core/wiring/relay.ts' {
  interface Relay {
    readonly operator: Operator
    readonly refused: RefusedPushesKeeper
    readonly unstored: Unstored
    readonly tallies: Tallies
  }
}

declare module '../core/flow/write-side.ts' {
  interface WriteSide extends ConsoleWrites {}
}

/** The verbs of this wing that write. Times are epoch milliseconds. */
interface ConsoleWrites {
  /** Notifies operators that a trouble has begun, unless they were notified of it before. Returns whether it notified them now. */
  beginTrouble(begun: TroubleBegun & OfRole & Posted): Promise<boolean>
  /** Notifies operators that a trouble is over, if they were notified that it had begun. Returns whether it notified them now. */
  endTrouble(ended: TroubleEnded & OfRole): Promise<boolean>
  /** Keeps when the relay did not run, for the event of the end of a full disk. */
  noteDown(down: Down): Promise<void>
  /** Notifies operators of jobs that have ended and of pushes that were quarantined. Resolves with the number of events. */
  tellOperators(request: { readonly nowMs: number }): Promise<number>
  /** Adds counts to their hours and days. A repeated flush is added once. */
  addTallies(flush: TallyFlush): Promise<void>
  /** Saves spells (see `RefusedPushes`), replacing earlier states of the same spells, and deletes spells that ended long ago. */
  saveRefused(request: { readonly spells: readonly StoredRefused[]; readonly nowMs: number }): Promise<void>
}

/** Only the replica with this role may make the call; absent: any replica may. */
interface OfRole {
  readonly ofRole?: 'poller' | 'janitor'
}

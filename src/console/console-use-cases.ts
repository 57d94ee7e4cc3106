import type { OperationQueries } from './audit/operations.routes.ts'
import type { EnableOperator, Operator, TestOperator } from './events/operator.routes.ts'
import type { createTellOperators } from './events/tell-operators.tx.ts'
import type { Unstored } from './events/unstored.ts'
import type { Overview } from './overview/overview.ts'
import type { LookBack } from './parcels/look-back.ts'
import type { ParcelCommands, WatchListReport, WatchListRequest } from './parcels/parcel-commands.ts'
import type { ParcelQueries } from './parcels/parcel-queries.ts'
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
  interface WriteSide extends ReturnType<typeof createTellOperators> {}
}

import type { ManageOrders } from './order/manage-orders.ts'
import type { Reports } from './report/report.ts'
import type { ManageWatchdogs } from './watchdogs/manage-watchdogs.ts'
import type { WatchdogWrites } from './watchdogs/watchdogs.tx.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly manageOrders: ManageOrders
    readonly reports: Reports
    readonly manageWatchdogs: ManageWatchdogs
  }
}

declare module '../core/flow/write-side.ts' {
  interface WriteSide {
    /** Removes orders whose parcels are gone. Looks at some, and returns the parcel after which to look on; null: that was all. */
    dropLostOrders(request: { readonly after: number; readonly limit: number }): Promise<number | null>
    /** Adds to the days of the carrier's report some of what transactions have noted. `zone`: of the days. Returns whether some is left. */
    foldReport(request: { readonly nowMs: number; readonly zone: string }): Promise<boolean>
  }
}

declare module '../core/wiring/relay.ts' {
  interface Relay {
    readonly reports: Reports
  }
}

declare module '../core/flow/write-side.ts' {
  interface WriteSide extends WatchdogWrites {}
}

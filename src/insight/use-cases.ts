import type { ManageOrders } from './order/manage-orders.ts'
import type { Reports } from './report/report.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly manageOrders: ManageOrders
    readonly reports: Reports
  }
}

declare module '../core/flow/write-side.ts' {
  interface WriteSide {
    /** Adds to the days of the carrier's report some of what transactions have noted. `zone`: of the days. Returns whether some is left. */
    foldReport(request: { readonly nowMs: number; readonly zone: string }): Promise<boolean>
  }
}

declare module '../core/wiring/relay.ts' {
  interface Relay {
    readonly reports: Reports
  }
}

import type { ManageOrders } from './order/manage-orders.ts'
import type { createSaveOrder } from './order/order.tx.ts'
import type { Reports } from './report/report.ts'
import type { createFoldReport } from './report/report.tx.ts'
import type { ManageWatchdogs } from './watchdogs/manage-watchdogs.ts'
import type { createWatchdogs } from './watchdogs/watchdogs.tx.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly manageOrders: ManageOrders
    readonly reports: Reports
    readonly manageWatchdogs: ManageWatchdogs
  }
}

declare module '../core/wiring/relay.ts' {
  interface Relay {
    readonly reports: Reports
  }
}

declare module '../core/flow/write-side.ts' {
  interface WriteSide extends ReturnType<typeof createFoldReport>, ReturnType<typeof createSaveOrder>, ReturnType<typeof createWatchdogs> {}
}

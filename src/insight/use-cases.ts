import type { ManageOrders } from './order/manage-orders.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly manageOrders: ManageOrders
  }
}

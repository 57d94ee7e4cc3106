import type { Delivery } from './delivery/open-delivery.ts'
import type { History } from './open-history.ts'
import type { Polling } from './polling.ts'

/** The capabilities that others use. They are made of the parts of the relay (`Relay`), and after those. */
export interface Capabilities {
  readonly history: History
  readonly delivery: Delivery
  readonly polling: Polling
}

import type { AdminReads } from './admin/admin-store.ts'
import type { DeliveryReads } from './delivery/delivery-store.ts'
import type { HistoryReads } from './history/history-store.ts'
import type { IngestReads } from './ingest/ingest-store.ts'
import type { PollingReads } from './polling/polling-store.ts'

/** All reads of the store. Reads do not use the connections that write. */
export interface ReadSide extends HistoryReads, AdminReads, DeliveryReads, IngestReads, PollingReads {
  /** Throws when the store cannot answer. */
  ping(): Promise<void>
  close(): Promise<void>
}

import type { AdminReads } from './admin/ports.ts'
import type { DeliveryReads } from './delivery/ports.ts'
import type { HistoryReads } from './history/ports.ts'
import type { IngestReads } from './ingest/ports.ts'
import type { PollingReads } from './polling/ports.ts'

/** All reads of the store. Reads do not use the connections that write. */
export interface ReadSide extends HistoryReads, AdminReads, DeliveryReads, IngestReads, PollingReads {
  /** Throws when the store cannot answer. */
  ping(): Promise<void>
  close(): Promise<void>
}

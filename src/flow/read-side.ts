import type { AdminReads } from './admin/ports.ts'
import type { DeliveryReads } from './delivery/ports.ts'
import type { HistoryReads } from './history/ports.ts'
import type { IngestReads } from './ingest/ports.ts'

/** Reads, on connections of their own. */
export interface ReadSide extends HistoryReads, AdminReads, DeliveryReads, IngestReads {
  /** Throws when the store cannot answer. */
  ping(): Promise<void>
  close(): Promise<void>
}

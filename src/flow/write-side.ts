import type { AdminWrites } from './admin/ports.ts'
import type { DeliveryWrites } from './delivery/ports.ts'
import type { HistoryWrites } from './history/ports.ts'
import type { IngestWrites } from './ingest/ports.ts'
import type { PollingWrites } from './polling/ports.ts'

/** The verbs that write: plain data in and out, so the same value runs in-process or on a thread of its own (ARCHITECTURE). */
export interface WriteSide extends HistoryWrites, PollingWrites, AdminWrites, DeliveryWrites, IngestWrites {
  close(): Promise<void>
}

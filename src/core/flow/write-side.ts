import type { ErasureWrites } from '../../upkeep/erasure/erasure-ports.ts'
import type { AdminWrites } from './admin/ports.ts'
import type { DeliveryWrites } from './delivery/ports.ts'
import type { HistoryWrites } from './history/ports.ts'
import type { IngestWrites } from './ingest/ports.ts'
import type { PollingWrites } from './polling/ports.ts'

/** Everything that writes to the store. Arguments and results are plain data, so that the verbs can run on this thread or another. */
export interface WriteSide extends HistoryWrites, PollingWrites, AdminWrites, DeliveryWrites, IngestWrites, ErasureWrites {
  close(): Promise<void>
}

import type { SharedFlights } from '../../flow/history/ports.ts'
import type { SharedCarrier } from '../../flow/polling/ports.ts'
import type { SharedModel } from '../../flow/polling/shared-model.ts'
import type { Clock } from '../../flow/ports.ts'
import type { ReadSide } from '../../flow/read-side.ts'
import type { WriteSide } from '../../flow/write-side.ts'
import type { CommitQueue } from '../../runtime/commit-queue.ts'
import type { DiskWatch } from '../../runtime/disk-watch.ts'
import type { ChangeTable } from '../../runtime/threads/change-table.ts'
import type { HostedReceiver } from '../hosting/hosted-receiver.ts'
import type { Replicas } from '../replicas.ts'

/** The store, with whatever writes to it and receives pushes for it. */
export interface Storage {
  /** The clock of everything that is stored or compared: the server's, if the store is on one. */
  readonly clock: Clock
  /** This relay among those that share the store. */
  readonly replicas: Replicas
  /** How replicas share what they learn about the carrier; null: nobody shares the store. */
  readonly model: Omit<SharedModel, 'keeper' | 'checkpoint'> | null
  /** Shows caches of answers which parcels have changed. */
  readonly changes: ChangeTable
  readonly writer: {
    /** For observations of this thread. */
    readonly queue: CommitQueue
    /** Handles replies that have arrived from a thread. */
    readonly drainReplies: () => void
    /** Resolves if writing is no longer possible. */
    readonly died: Promise<unknown>
  }
  readonly receiver: HostedReceiver
  /** Names the store in messages; of a file it is the path. */
  readonly path: string
  readonly reads: ReadSide
  readonly disk: DiskWatch
  readonly write: Omit<WriteSide, 'record'>
  /** Refuses all writes from now on; resolves when everything that was taken before is stored and nothing writes any more. */
  readonly endWriting: () => Promise<void>
  /** Ends what a move that was killed has left in the store, if nobody runs it any more. */
  readonly clearMoves: () => Promise<void>
  /** What replicas share about the carrier; null: this relay is alone with its store. */
  readonly shared: (SharedCarrier & { readonly flights: SharedFlights }) | null
}

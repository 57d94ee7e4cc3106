import type { Membership } from '../../flow/admin/replicas/membership.ts'
import type { SharedFlights } from '../../flow/history/ports.ts'
import type { SharedCarrier } from '../../flow/polling/ports.ts'
import type { SharedModel } from '../../flow/polling/shared-model.ts'
import type { Clock } from '../../flow/ports.ts'
import type { ReadSide } from '../../flow/read-side.ts'
import type { WriteSide } from '../../flow/write-side.ts'
import type { CommitQueue } from '../../runtime/commit-queue.ts'
import type { DiskWatch } from '../../runtime/disk-watch.ts'
import type { ChangeTable } from '../../runtime/threads/change-table.ts'
import type { Receiver } from '../hosting/receive-side.ts'
import type { Replicas } from '../replicas.ts'

/** The store, with everything that writes to it and receives pushes for it. */
export interface Storage {
  /** The clock of everything that is stored or compared: the server's, if the store is on one. */
  readonly clock: Clock
  /** The membership of this relay among the relays that share the store. */
  readonly replicas: Membership
  /** Shows answer caches which parcels have changed. */
  readonly changes: ChangeTable
  /** Takes observations of this thread. */
  readonly queue: CommitQueue
  readonly receiver: Receiver
  /** The threads that write and receive; null: this thread does both. */
  readonly threads: StorageThreads | null
  /** The name of the store in messages. For a file it is the path. */
  readonly path: string
  readonly reads: ReadSide
  readonly disk: DiskWatch
  readonly write: Omit<WriteSide, 'record'>
  /** Refuses all writes from now on. Resolves when everything that was taken before is stored, and nothing writes any more. */
  readonly endWriting: () => Promise<void>
  /** The state that this relay shares with others; null: nobody else can use the store. */
  readonly shared: SharedStore | null
}

export interface StorageThreads {
  /** Handles replies of the writer that have arrived. */
  readonly drainReplies: () => void
  /** Resolves with the reason if one of them ends by itself. */
  readonly died: Promise<unknown>
}

export interface SharedStore {
  /** The carrier's budget and token. */
  readonly carrier: SharedCarrier
  readonly flights: SharedFlights
  /** The carrier model that all replicas share. */
  readonly model: Omit<SharedModel, 'keeper' | 'checkpoint'>
  readonly replicas: Pick<Replicas, 'begin'>
  /** Removes what a killed move has left in the store, unless somebody continues that move. */
  readonly clearMoves: () => Promise<void>
}

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

/** The open store, with everything that writes to it and receives pushes for it. */
export interface Storage {
  /** The clock for every time that is stored or compared with a stored one. If the store is on a server, it is the server's clock. */
  readonly clock: Clock
  /** The roles that this relay has among the relays that share the store. */
  readonly replicas: Membership
  /** Shows answer caches which parcels have changed. */
  readonly changes: ChangeTable
  /** The queue for observations that this thread wants to record. */
  readonly queue: CommitQueue
  readonly receiver: Receiver
  /** The threads that write and receive; null: this thread does both. */
  readonly threads: StorageThreads | null
  /** The name of the store in messages. For a file it is the path. */
  readonly path: string
  readonly reads: ReadSide
  readonly disk: DiskWatch
  readonly write: Omit<WriteSide, 'record'>
  /** Refuses all writes from now on. Resolves when everything that was accepted before is stored, and nothing writes any more. */
  readonly endWriting: () => Promise<void>
  /** What this relay shares with other relays on the store; null: the store is a file, which only one relay can use. */
  readonly shared: SharedStore | null
}

export interface StorageThreads {
  /** Handles the replies of the writer's thread that have arrived. */
  readonly drainReplies: () => void
  /** Resolves with the reason if one of the threads ends by itself. */
  readonly died: Promise<unknown>
}

export interface SharedStore {
  /** The carrier's budget and token. */
  readonly carrier: SharedCarrier
  readonly flights: SharedFlights
  /** The carrier model that all replicas share. */
  readonly model: Omit<SharedModel, 'keeper' | 'checkpoint'>
  readonly replicas: Pick<Replicas, 'begin'>
  /** Removes what a killed move has left in the store, unless a live replica continues that move. */
  readonly clearMoves: () => Promise<void>
}

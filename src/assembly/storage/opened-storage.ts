import type { UnstoredItems } from '../../console/events/unstored.ts'
import type { SharedModel } from '../../core/flow/polling/shared-model.ts'
import type { Clock } from '../../core/flow/ports.ts'
import type { WriteSide } from '../../core/flow/write-side.ts'
import type { DiskWatch } from '../../core/runtime/disk-watch.ts'
import type { CommitQueue } from '../../core/runtime/group-commit.ts'
import type { ChangeTable } from '../../core/runtime/threads/change-table.ts'
import type { SharedCarrier, SharedFlights } from '../../core/store/polling/shared-carrier.ts'
import type { ReadSide } from '../../core/store/read-store.ts'
import type { Receiver } from '../../core/wiring/hosting/receive-side.ts'
import type { Membership } from '../../server/replicas/membership.ts'
import type { Replicas } from '../../server/replicas/replicas.ts'

/** The open store, with everything that writes to it and receives pushes for it. */
export interface Storage {
  /** Use this clock for times that are stored, or compared with stored times. For a store on a server, it is the server's clock. */
  readonly clock: Clock
  /** The roles that this relay has among the relays that share the store. */
  readonly replicas: Membership
  /** The table in which the caches of answers see which parcels have changed. */
  readonly changes: ChangeTable
  /** The queue for observations that this thread wants to record. */
  readonly queue: CommitQueue
  readonly receiver: Receiver
  /** The threads that write and receive; null: this thread does both. */
  readonly threads: StorageThreads | null
  /** The path of the store, or the name of its database without the password: for messages. */
  readonly path: string
  readonly reads: ReadSide
  readonly disk: DiskWatch
  /** A file beside the store for what cannot be stored; null: the store is on a server. */
  readonly unstoredFile: UnstoredItems | null
  readonly write: Omit<WriteSide, 'record'>
  /** Refuses all further writes. Resolves when everything that was accepted before is stored. */
  readonly endWriting: () => Promise<void>
  /** Null: the store is a file, which only one relay can use. */
  readonly shared: SharedStore | null
}

export interface StorageThreads {
  /** Handles the replies that have arrived from the writer's thread. */
  readonly drainReplies: () => void
  /** Resolves with the reason if one of the threads ends by itself. */
  readonly died: Promise<unknown>
}

export interface SharedStore {
  readonly carrier: SharedCarrier
  readonly flights: SharedFlights
  readonly model: Omit<SharedModel, 'keeper' | 'checkpoint'>
  readonly replicas: Pick<Replicas, 'begin'>
  /** If a replica was killed while it moved the store, removes what is left of the move. */
  readonly clearMoves: () => Promise<void>
}

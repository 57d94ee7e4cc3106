import { describeFailure } from '../domain/system-reason.ts'
import type { SharedModel } from '../flow/polling/shared-model.ts'
import type { Clock } from '../flow/ports.ts'
import type { WriteSide } from '../flow/write-side.ts'
import type { ChangeTable } from '../runtime/answer-cache.ts'
import type { DiskWatch } from '../runtime/disk-watch.ts'
import type { CommitQueue } from '../runtime/group-commit.ts'
import type { SharedCarrier, SharedFlights } from '../store/polling/shared-carrier.ts'
import type { ReadSide } from '../store/read-store.ts'
import type { Receiver } from './hosting/receive-side.ts'
import type { Membership } from './replica-name.ts'

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

/** What replicas share besides the store. `server/server-use-cases.ts` adds to it. */
export interface SharedStore {
  readonly carrier: SharedCarrier
  readonly flights: SharedFlights
  readonly model: Omit<SharedModel, 'keeper' | 'checkpoint'>
}

/** Waits for the first write to the store. A store that opens may still refuse writes, so a failure names the store and the remedy. */
export async function firstWrite<T>(storePath: string, written: Promise<T>): Promise<T> {
  return await written.catch((cause: unknown) => {
    if (!(cause instanceof Error && cause.message.includes('SQLITE_'))) throw cause
    throw new Error(`store: ${storePath} can be opened but not written: ${describeFailure(cause)}. Nothing was deleted. Check the disk.`, {
      cause,
    })
  })
}

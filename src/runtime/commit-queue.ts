import type { BatchReport, Incoming } from '../domain/history/recording.ts'

/** Where a recorder puts observations to be committed in batches: in this process, or on the thread that writes. */
export interface CommitQueue {
  /** Puts an observation behind those that were put before. False: there is no room now; there is after the next commit. */
  put(incoming: Incoming): boolean
  /** Whether a commit was asked for that has not begun: it will find what is put now. */
  isAwaited(): boolean
  /** Records what is there when its turn comes as one batch, up to a bound. Rejects only if nothing can be recorded any more. */
  commit(): Promise<Committed>
  /** Takes in at once the replies that have arrived. Without a thread there are none. */
  readonly drainReplies?: () => void
}

/** What those who wait for a commit are told of it. Who keeps answers about parcels is told before (see `ChangeTable`). */
export type CommitReport = Omit<BatchReport, 'touchedParcels'>

export type Committed =
  /** Durable. */
  | { readonly taken: number; readonly report: CommitReport }
  /** So many of the first were tried, and none of them is recorded. */
  | { readonly taken: number; readonly error: unknown }

/** A queue whose batches this thread records, one after the other. */
export function queueInProcess(record: (batch: readonly Incoming[]) => Promise<CommitReport>, batchMax: number): CommitQueue {
  let waiting: Incoming[] = []
  let awaited = 0
  let last: Promise<unknown> = Promise.resolve()

  async function next(): Promise<Committed> {
    awaited -= 1
    const batch = waiting.slice(0, batchMax)
    waiting = waiting.slice(batchMax)
    try {
      return { taken: batch.length, report: await record(batch) }
    } catch (error) {
      return { taken: batch.length, error }
    }
  }

  return {
    put(incoming) {
      waiting.push(incoming)
      return true
    },
    isAwaited: () => awaited > 0,
    commit() {
      awaited += 1
      const turn = last.then(next)
      last = turn
      return turn
    },
  }
}

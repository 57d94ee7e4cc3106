import pLimit from 'p-limit'
import type { BatchReport, Incoming } from '../domain/history/recording.ts'

/** A queue of observations that are committed in batches, in this thread or on the writer's thread. */
export interface CommitQueue {
  /** False: there is no room until the next commit. */
  put(incoming: Incoming): boolean
  /** Whether a commit was requested and has not begun. It will include an observation that is put now. */
  isAwaited(): boolean
  /** Waits for earlier commits, then records queued observations as one batch. Rejects only if recording is no longer possible. */
  commit(): Promise<Committed>
  /** Handles the replies that have arrived from the writer's thread. Absent: there is no such thread. */
  readonly drainReplies?: () => void
}

/** What the senders of observations need to know of their commit. Caches see the changed parcels in `ChangeTable`. */
export type CommitReport = Omit<BatchReport, 'touchedParcels'>

export type Committed =
  | { readonly taken: number; readonly report: CommitReport }
  /** None of the first `taken` observations is recorded. */
  | { readonly taken: number; readonly error: unknown }

/**
 * Creates a queue whose batches are recorded in this thread, at most `atOnce()` at a time. Commits resolve in the order of the requests, so
 * each result is about the oldest observations that have no result yet.
 */
export function queueInProcess(
  record: (batch: readonly Incoming[]) => Promise<CommitReport>,
  batchMax: number,
  atOnce: () => number = () => 1,
): CommitQueue {
  const inTurn = pLimit(1)
  let waiting: Incoming[] = []
  let awaited = 0
  let reported: Promise<unknown> = Promise.resolve()

  async function commitNext(): Promise<Committed> {
    awaited -= 1
    const batch = waiting.slice(0, batchMax)
    waiting = waiting.slice(batchMax)
    // An earlier commit that began late may have taken these observations too.
    if (batch.length === 0) return { taken: 0, report: { outcomes: [], durationMs: 0 } }
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
      inTurn.concurrency = atOnce()
      const before = reported
      const committed = inTurn(commitNext)
      const turn = before.then(() => committed)
      reported = turn
      return turn
    },
  }
}

import pLimit from 'p-limit'
import type { BatchReport, Incoming } from '../domain/history/recording.ts'

/** A queue of observations, which are committed in batches: in the current thread, or on the writer's thread. */
export interface CommitQueue {
  /** Appends an observation. False: there is no room until the next commit. */
  put(incoming: Incoming): boolean
  /** Whether a commit was requested and has not begun yet. Such a commit will include an observation that is put now. */
  isAwaited(): boolean
  /** Waits for earlier commits, then records queued observations as one batch. Rejects only if recording is no longer possible. */
  commit(): Promise<Committed>
  /** Handles replies that have already arrived. Absent if there is no thread. */
  readonly drainReplies?: () => void
}

/** The result of a commit for the senders of its observations. It lacks the changed parcels, which caches find in `ChangeTable`. */
export type CommitReport = Omit<BatchReport, 'touchedParcels'>

export type Committed =
  /** The observations are on disk. */
  | { readonly taken: number; readonly report: CommitReport }
  /** The first `taken` observations failed; none of them is recorded. */
  | { readonly taken: number; readonly error: unknown }

/**
 * Creates a queue whose batches are recorded in this thread, at most `atOnce()` at a time. Commits resolve in the order in which they were
 * requested, because the caller assigns each result to its oldest observations that have no result yet.
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
    // If the previous commit began late, it has taken these observations too. Then the batch is empty.
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

import { AppError } from '../domain/errors.ts'
import type { Incoming, RecordOutcome } from '../domain/history/recording.ts'
import type { CommitReport, Committed, Recorder } from './threads/recorder.ts'

export interface GroupCommitPorts {
  readonly recorder: Recorder
  /** Called after each commit and before anyone who waits for it is told. */
  readonly onCommitted: (report: CommitReport) => void
  /** Called once of failures in a row that say the same. */
  readonly onFailed: (error: unknown) => void
  /** Takes in at once that a batch is committed, if a recorder on a thread has said so. */
  readonly hear?: () => void
  /** A clock that only goes forward. */
  readonly monotonic: () => number
  /** Runs something after a time, unless the process has nothing else left to do. */
  readonly later?: (work: () => void, ms: number) => void
}

export interface GroupCommitOptions {
  /** The most that may be with the recorder: what is there can no longer be refused, only left unanswered. */
  readonly recorderMax: number
  /** The most that may wait; more are refused at once, so that memory and waiting stay bounded. */
  readonly waitingMax: number
  /** How long one may wait for its turn; on a disk that is slower than that a sender is better told to come again. */
  readonly patienceMs: number
}

export interface GroupCommit {
  /** Resolves once the observation is durable. Throws `storage_unavailable` when its batch could not be committed. */
  submit(incoming: Incoming): Promise<RecordOutcome>
  /** How many are not committed yet. */
  waiting(): number
  /** Resolves when nothing waits and nothing is being committed. What failed is not tried again from then on. */
  drained(): Promise<void>
}

interface Waiting {
  readonly incoming: Incoming
  readonly sinceMs: number
  readonly resolve: (outcome: RecordOutcome) => void
  readonly reject: (error: unknown) => void
}

const RETRY_AFTER_MS = 1000
/** How long after a commit failed, and nothing has come since, its batch is tried again. */
const TRY_AGAIN_MS = 1000
/** How many observations may be with the recorder: a batch that it commits, and the next. */
const RECORDER_BATCHES = 2
/** How many may wait for their commit, as a multiple of a batch. */
const WAITING_BATCHES = 64
/** How long one may wait for its turn, before its commit itself. */
const PATIENCE_MS = 10_000

/** The bounds that go with `limits.batch`. */
export function boundsOf(batchMax: number): GroupCommitOptions {
  return { recorderMax: batchMax * RECORDER_BATCHES, waitingMax: batchMax * WAITING_BATCHES, patienceMs: PATIENCE_MS }
}

/**
 * Group commit: what arrives while one batch is being committed forms the next. One sync to disk then pays for many observations, and an
 * idle relay commits each at once. No timer: the commit itself is the wait. There is always a commit asked for that has not begun while
 * anything waits, so that the recorder goes from one to the next without a word from here.
 */
export function createGroupCommit(ports: GroupCommitPorts, options: GroupCommitOptions): GroupCommit {
  const { recorder } = ports
  const { recorderMax, waitingMax, patienceMs } = options
  /** Not with the recorder yet. */
  let queue: Waiting[] = []
  /** With the recorder, oldest first. */
  let put: Waiting[] = []
  let whenDrained: (() => void)[] = []
  const { later = runLater } = ports
  /** The batch that failed last, if none has been committed since. */
  let refused: readonly Incoming[] = []
  let isRetryDue = false
  let lastFailure: string | null = null
  let closing = false

  function refuseStale(): void {
    const sinceMs = ports.monotonic() - patienceMs
    const stale = ({ sinceMs: own }: Waiting) => own < sinceMs
    if (!put.some(stale) && !queue.some(stale)) return
    const failure = unavailable('Storing takes too long. Send it again later.')
    for (const { reject } of [...put, ...queue].filter(stale)) reject(failure)
    queue = queue.filter((waiting) => !stale(waiting))
  }

  function advance(): void {
    let moved = 0
    for (; put.length < recorderMax; moved++) {
      const waiting = queue[moved]
      if (waiting === undefined || !recorder.put(waiting.incoming)) break
      put.push(waiting)
    }
    if (moved > 0) queue = queue.slice(moved)
    if (put.length > 0 && !recorder.isAwaited()) recorder.commit().then(settle, (error: unknown) => settle({ taken: put.length, error }))
  }

  function settle(committed: Committed): void {
    const senders = put.slice(0, committed.taken)
    put = put.slice(committed.taken)
    refuseStale()
    // The next is asked for before anyone is told of this one: telling takes time.
    advance()
    tell(senders, committed)
    if (put.length > 0 || queue.length > 0) return
    for (const drained of whenDrained) drained()
    whenDrained = []
  }

  function tell(senders: readonly Waiting[], committed: Committed): void {
    if ('report' in committed) {
      if (senders.length > 0) {
        refused = []
        lastFailure = null
        ports.onCommitted(committed.report)
      }
      tellSenders(senders, committed.report)
      return
    }
    tellFailure(committed.error)
    refused = senders.map(({ incoming }) => incoming)
    retryLater()
    const failure = unavailable('The store could not take this now. Send it again later.', committed.error)
    for (const { reject } of senders) reject(failure)
  }

  /** Once of the same failure, however often it is tried again. */
  function tellFailure(error: unknown): void {
    const said = String(error)
    if (said === lastFailure) return
    lastFailure = said
    ports.onFailed(error)
  }

  /**
   * Its senders were told to come again, but they may be kept away because the relay is not ready, and then nothing would show that the store
   * works. What they send again after this has worked is a duplicate. While others come, their commits show the same.
   */
  function retryLater(): void {
    if (isRetryDue || closing) return
    isRetryDue = true
    later(() => {
      isRetryDue = false
      if (refused.length === 0 || closing) return
      if (put.length + queue.length > 0) return retryLater()
      const sinceMs = ports.monotonic()
      queue = refused.map((incoming) => ({ incoming, sinceMs, resolve: ignore, reject: ignore }))
      refused = []
      advance()
    }, TRY_AGAIN_MS)
  }

  return {
    submit(incoming) {
      if (queue.length + put.length >= waitingMax)
        return Promise.reject(unavailable('Too much is waiting to be stored. Send it again later.'))
      ports.hear?.()
      return new Promise((resolve, reject) => {
        queue.push({ incoming, sinceMs: ports.monotonic(), resolve, reject })
        advance()
      })
    },
    waiting: () => queue.length + put.length,
    drained() {
      closing = true
      return put.length + queue.length === 0 ? Promise.resolve() : new Promise((resolve) => whenDrained.push(resolve))
    },
  }
}

function ignore(): void {}

function runLater(work: () => void, ms: number): void {
  setTimeout(work, ms).unref()
}

function tellSenders(batch: readonly Waiting[], report: CommitReport): void {
  for (const [at, { resolve, reject }] of batch.entries()) {
    const outcome = report.outcomes[at]
    if (outcome === undefined) reject(new Error('a batch was recorded without saying what became of each observation'))
    else resolve(outcome)
  }
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('storage_unavailable', message, { cause, retryAfterMs: RETRY_AFTER_MS })
}

import { AppError } from '../domain/errors.ts'
import type { BatchReport, Incoming, RecordOutcome } from '../flow/ports.ts'

export interface GroupCommitPorts {
  /** Durable when it resolves, nothing recorded when it rejects. */
  readonly record: (batch: readonly Incoming[]) => Promise<BatchReport>
  /** Called after each commit and before anyone who waits for it is told. */
  readonly onCommitted: (report: BatchReport, batch: readonly Incoming[]) => void
  readonly onFailed: (error: unknown) => void
  /** Takes in at once that a batch is committed, if a recorder on a thread has said so: it has nothing to do until it gets the next one. */
  readonly hear?: () => void
  /** A clock that only goes forward. */
  readonly monotonic: () => number
}

export interface GroupCommitOptions {
  /** The most observations in one transaction. */
  readonly batchMax: number
  /** The most that may wait; more are refused at once, so that memory and waiting stay bounded. */
  readonly waitingMax: number
  /** How long one may wait for its turn; on a disk that is slower than that a sender is better told to come again. */
  readonly patienceMs: number
}

export interface GroupCommit {
  /** Resolves once the observation is durable. Throws `storage_unavailable` when its batch could not be committed. */
  submit(incoming: Incoming): Promise<RecordOutcome>
  waiting(): number
  /** Resolves when nothing waits and nothing is being committed. */
  drained(): Promise<void>
}

interface Waiting {
  readonly incoming: Incoming
  readonly sinceMs: number
  readonly resolve: (outcome: RecordOutcome) => void
  readonly reject: (error: unknown) => void
}

const RETRY_AFTER_MS = 1000

/**
 * Group commit: what arrives while one batch is being committed forms the next. One sync to disk then pays for many observations, and an
 * idle relay commits each at once. No timer: the commit itself is the wait.
 */
export function createGroupCommit(ports: GroupCommitPorts, { batchMax, waitingMax, patienceMs }: GroupCommitOptions): GroupCommit {
  let queue: Waiting[] = []
  let running: Promise<void> | null = null

  function refuseStale(): void {
    const sinceMs = ports.monotonic() - patienceMs
    const firstInTime = queue.findIndex((waiting) => waiting.sinceMs >= sinceMs)
    const stale = queue.splice(0, firstInTime === -1 ? queue.length : firstInTime)
    for (const { reject } of stale) reject(unavailable('Storing takes too long. Send it again later.'))
  }

  /** Hands the next batch to the recorder; what comes back tells its senders. Null: nothing waits. */
  function start(): Promise<() => void> | null {
    refuseStale()
    if (queue.length === 0) return null
    const batch = queue.slice(0, batchMax)
    queue = queue.slice(batchMax)
    const observations = batch.map(({ incoming }) => incoming)
    return ports.record(observations).then(
      (report) => () => {
        ports.onCommitted(report, observations)
        tellSenders(batch, report)
      },
      (error: unknown) => () => {
        ports.onFailed(error)
        const failure = unavailable('The store could not take this now. Send it again later.', error)
        for (const { reject } of batch) reject(failure)
      },
    )
  }

  async function run(): Promise<void> {
    let committing = start()
    while (committing !== null) {
      const tell = await committing
      // The next batch is on its way before anyone is told of this one: telling takes time in which the recorder would have nothing to do.
      committing = start()
      tell()
      committing ??= start()
    }
    running = null
  }

  return {
    submit(incoming) {
      if (queue.length >= waitingMax) return Promise.reject(unavailable('Too much is waiting to be stored. Send it again later.'))
      ports.hear?.()
      return new Promise((resolve, reject) => {
        queue.push({ incoming, sinceMs: ports.monotonic(), resolve, reject })
        running ??= run()
      })
    },
    waiting: () => queue.length,
    async drained() {
      while (running !== null) await running
    },
  }
}

function tellSenders(batch: readonly Waiting[], report: BatchReport): void {
  for (const [at, { resolve, reject }] of batch.entries()) {
    const outcome = report.outcomes[at]
    if (outcome === undefined) reject(new Error('a batch was recorded without saying what became of each observation'))
    else resolve(outcome)
  }
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('storage_unavailable', message, { cause, retryAfterMs: RETRY_AFTER_MS })
}

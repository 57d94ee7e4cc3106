import pLimit from 'p-limit'
import { AppError, storeUnavailable } from '../domain/errors.ts'
import type { BatchReport, Incoming, RecordOutcome } from '../domain/history/recording.ts'
import type { Recorder } from '../flow/ports.ts'

export interface GroupCommitPorts {
  readonly queue: CommitQueue
  /** Called after each commit, before its senders get their answers. */
  readonly onCommitted: (report: CommitReport) => void
  /** Called when commits fail, once for each series of failures with the same message. */
  readonly onFailed: (error: unknown) => void
  readonly monotonic: () => number
  /** Runs work after a delay in milliseconds, without keeping the process alive. */
  readonly later?: (work: () => void, ms: number) => void
}

export interface GroupCommitOptions {
  /** How many observations may be in `queue`. An observation in the queue is recorded, even if its sender is refused after `patienceMs`. */
  readonly recorderMax: number
  /** How many observations may wait in all. More are refused at once, so that memory and waiting times stay limited. */
  readonly waitingMax: number
  /** How long an observation may wait. Then the relay refuses the observation, because the disk is too slow. */
  readonly patienceMs: number
}

interface Waiting {
  readonly incoming: Incoming
  readonly sinceMs: number
  readonly resolve: (outcome: RecordOutcome) => void
  readonly reject: (error: unknown) => void
}

/** The observations that are not recorded yet, each list in order of arrival. */
interface Lines {
  /** Observations that are not in the queue yet. */
  waiting: Waiting[]
  /** Observations in the queue. */
  put: Waiting[]
}

const RETRY_AFTER_MS = 1000
/** How long to wait before a failed batch is tried again, if nothing else arrives. */
const TRY_AGAIN_MS = 1000
/** The queue holds two batches: the one being committed and the next. */
const RECORDER_BATCHES = 2
const WAITING_BATCHES = 64
const PATIENCE_MS = 10_000

/** Derives the limits from `limits.batch`. */
export function boundsOf(batchMax: number): GroupCommitOptions {
  return { recorderMax: batchMax * RECORDER_BATCHES, waitingMax: batchMax * WAITING_BATCHES, patienceMs: PATIENCE_MS }
}

/**
 * Creates a recorder with group commit: observations that arrive during one commit form the next batch. So one sync to disk serves many
 * observations. An idle relay commits each observation at once.
 */
export function createGroupCommit(ports: GroupCommitPorts, options: GroupCommitOptions): Recorder {
  const { queue } = ports
  const { recorderMax, waitingMax } = options
  const lines: Lines = { waiting: [], put: [] }
  let whenDrained: (() => void)[] = []
  let closing = false
  const pending = () => lines.waiting.length + lines.put.length
  const reportFailure = createFailureReport(ports.onFailed)
  const retry = createRetry(ports.later ?? runLater, {
    mayRetry: () => !closing,
    isBusy: () => pending() > 0,
    submit(refused) {
      const sinceMs = ports.monotonic()
      // This overwrites nothing: a batch is tried again only while nothing waits (`isBusy`).
      lines.waiting = refused.map((incoming) => ({ incoming, sinceMs, resolve: ignore, reject: ignore }))
      advance()
    },
  })

  function advance(): void {
    const moved = moveTo(queue, lines, recorderMax)
    if (moved > 0) lines.waiting = lines.waiting.slice(moved)
    if (lines.put.length > 0 && !queue.isAwaited())
      queue.commit().then(settle, (error: unknown) => settle({ taken: lines.put.length, error }))
  }

  function settle(committed: Committed): void {
    const senders = lines.put.slice(0, committed.taken)
    lines.put = lines.put.slice(committed.taken)
    refuseStale(lines, ports.monotonic() - options.patienceMs)
    // Request the next commit first, so that it runs while the senders of this commit get their answers.
    advance()
    if ('report' in committed) succeed(senders, committed.report)
    else fail(senders, committed.error)
    if (pending() > 0) return
    for (const drained of whenDrained) drained()
    whenDrained = []
  }

  function succeed(senders: readonly Waiting[], report: CommitReport): void {
    if (senders.length > 0) {
      retry.forget()
      reportFailure.forget()
      ports.onCommitted(report)
    }
    answerSenders(senders, report)
  }

  function fail(senders: readonly Waiting[], error: unknown): void {
    reportFailure.failed(error)
    retry.later(senders.map(({ incoming }) => incoming))
    const failure = storeUnavailable(error, RETRY_AFTER_MS)
    for (const { reject } of senders) reject(failure)
  }

  return {
    submit(incoming) {
      if (pending() >= waitingMax) return Promise.reject(unavailable('Too many pushes are waiting to be stored. Try again later.'))
      queue.drainReplies?.()
      return new Promise((resolve, reject) => {
        lines.waiting.push({ incoming, sinceMs: ports.monotonic(), resolve, reject })
        advance()
      })
    },
    pending,
    drained() {
      closing = true
      return pending() === 0 ? Promise.resolve() : new Promise((resolve) => whenDrained.push(resolve))
    },
  }
}

/** Moves as many observations into the queue as fit, and returns their number. */
function moveTo(queue: CommitQueue, { waiting, put }: Lines, max: number): number {
  let moved = 0
  for (; put.length < max; moved++) {
    const next = waiting[moved]
    if (next === undefined || !queue.put(next.incoming)) break
    put.push(next)
  }
  return moved
}

/** Refuses observations that arrived before `beforeMs`. Observations in the queue are recorded nevertheless. */
function refuseStale(lines: Lines, beforeMs: number): void {
  const isStale = ({ sinceMs }: Waiting) => sinceMs < beforeMs
  if (!lines.put.some(isStale) && !lines.waiting.some(isStale)) return
  const failure = unavailable('The store is too slow. Try again later.')
  for (const { reject } of [...lines.put, ...lines.waiting].filter(isStale)) reject(failure)
  lines.waiting = lines.waiting.filter((waiting) => !isStale(waiting))
}

function createFailureReport(report: (error: unknown) => void) {
  let last: string | null = null
  return {
    failed(error: unknown): void {
      const text = String(error)
      if (text === last) return
      last = text
      report(error)
    },
    forget(): void {
      last = null
    },
  }
}

interface RetryPorts {
  mayRetry(): boolean
  /** Whether other observations wait. Their commit will show whether the store works. */
  isBusy(): boolean
  submit(refused: readonly Incoming[]): void
}

/**
 * Records the last failed batch again after a while, to find out whether the store works again. Without this, a relay that gets no new
 * pushes because it is not ready would never find out. If the senders repeat the pushes of the batch later, the repeats are duplicates.
 */
function createRetry(later: (work: () => void, ms: number) => void, ports: RetryPorts) {
  let refused: readonly Incoming[] = []
  let isDue = false

  function schedule(): void {
    if (isDue || !ports.mayRetry()) return
    isDue = true
    later(run, TRY_AGAIN_MS)
  }

  function run(): void {
    isDue = false
    if (refused.length === 0 || !ports.mayRetry()) return
    if (ports.isBusy()) {
      schedule()
      return
    }
    const batch = refused
    refused = []
    ports.submit(batch)
  }

  return {
    later(batch: readonly Incoming[]): void {
      refused = batch
      schedule()
    },
    forget(): void {
      refused = []
    },
  }
}

function ignore(): void {}

function runLater(work: () => void, ms: number): void {
  setTimeout(work, ms).unref()
}

function answerSenders(batch: readonly Waiting[], report: CommitReport): void {
  for (const [at, { resolve, reject }] of batch.entries()) {
    const outcome = report.outcomes[at]
    if (outcome === undefined) reject(new Error('a recorded batch has no outcome for an observation'))
    else resolve(outcome)
  }
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('storage_unavailable', message, { cause, retryAfterMs: RETRY_AFTER_MS })
}

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

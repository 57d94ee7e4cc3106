import { REPLAY_BATCH_SIZE } from '../../flow/delivery/replays.ts'
import { startRepeating } from '../../runtime/repeating.ts'
import type { Relay } from '../relay.ts'
import { startRetryingWorker } from '../retrying-worker.ts'

/** How many events of the feed one transaction queues. Pushes wait for it about as long as for a batch of other pushes. */
const CATCH_UP_EVENTS = 100

export interface JanitorPorts extends Pick<Relay, 'write' | 'replicas' | 'clock' | 'log' | 'meter' | 'reprocessed' | 'retired'> {
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  readonly onQueued: () => void
  /** Called when the order of waiting deliveries may have changed. */
  readonly onReordered: () => void
  /** Whether the disk has room for long work. Such work takes some room before it frees any. */
  readonly hasRoom: () => boolean
}

const LOOK_AT_RETENTION_MS = 60_000

/** While this replica is the janitor, it does the long work of delivery, the inbox and retention, a batch at a time. */
export function startJanitor(ports: JanitorPorts) {
  const { write, replicas, clock, log, meter, inTurn, onQueued, onReordered, reprocessed, retired, hasRoom } = ports
  const holds = () => replicas.holds('janitor')
  const feedReplay = startRetryingWorker(
    async () => {
      if (!holds()) return 'idle'
      const { queued, isDone } = await write.replayFeed({ limit: CATCH_UP_EVENTS, nowMs: clock.now() })
      if (queued > 0) onQueued()
      return isDone ? 'idle' : 'busy'
    },
    { log, clock, holds, failure: 'cannot queue events of the feed for an endpoint; the relay retries' },
  )
  const longWork = startRetryingWorker(
    async () => {
      if (!holds() || !hasRoom()) return 'idle'
      // Cancel before working on jobs, because a job may replay deliveries that are to be cancelled.
      if (!(await inTurn(() => write.cancelRemoved({ limit: REPLAY_BATCH_SIZE }))).isDone) return 'busy'
      const { hasWorked, hasRetired, isDone, report, rebuilt } = await inTurn(() =>
        write.workOnJobs({ limit: REPLAY_BATCH_SIZE, nowMs: clock.now() }),
      )
      if (report !== null) reprocessed(report)
      if (hasRetired || rebuilt?.hasChanged === true) retired()
      if (rebuilt !== null) meter.rebuilt(rebuilt)
      // A rebuild changes no delivery.
      else if (hasWorked) onReordered()
      return isDone ? 'idle' : 'busy'
    },
    { log, clock, holds, failure: 'part of a background job failed; the relay retries' },
  )
  const retention = startRetryingWorker(
    async () => {
      if (!holds() || !hasRoom()) return 'idle'
      const { isDone, hasRetired, hasReordered } = await inTurn(() => write.prune({ nowMs: clock.now() }))
      if (hasRetired) retired()
      if (hasReordered) onReordered()
      return isDone ? 'idle' : 'busy'
    },
    { log, clock, holds, failure: 'a part of a retention pass failed; the relay retries' },
  )
  const looking = startRepeating(async () => {
    retention.wake()
    // A job may wait for room on the disk.
    longWork.wake()
  }, LOOK_AT_RETENTION_MS)
  const workers = [feedReplay, longWork]
  return {
    wake() {
      for (const worker of workers) worker.wake()
    },
    async rests(): Promise<void> {
      await Promise.all([...workers, retention].map((worker) => worker.rests()))
    },
    async stop(): Promise<void> {
      looking.stop()
      for (const worker of [...workers, retention]) await worker.stop()
    },
  }
}

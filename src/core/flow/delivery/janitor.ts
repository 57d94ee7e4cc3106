import type { BatchReport } from '../../domain/history/recording.ts'
import type { Part, Writes } from '../relay.ts'
import { REPLAY_BATCH_SIZE } from './replays.ts'

/** How many events of the feed one transaction queues. Pushes wait for it about as long as for a batch of other pushes. */
const CATCH_UP_EVENTS = 100

export interface JanitorPorts
  extends Part<'clock', 'now'>,
    Part<'meter', 'rebuilt'>,
    Writes<'replayFeed' | 'cancelRemoved' | 'workOnJobs' | 'prune'> {
  /** Whether this replica is the janitor. */
  readonly holds: () => boolean
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  readonly onQueued: () => void
  /** Called when the order of waiting deliveries may have changed. */
  readonly onReordered: () => void
  /** Called with the report of pushes that a job has processed again. */
  readonly reprocessed: (report: BatchReport) => void
  /** Called when the feed has events that came from no observation. */
  readonly retired: () => void
  /** Whether the disk has room for long work. Such work takes some room before it frees any. */
  readonly hasRoom: () => boolean
}

/** A pass does a batch of work. `busy`: there is more. */
export type JanitorPass = () => Promise<'busy' | 'idle'>

/** Makes the passes of the janitor: the long work of delivery, the inbox and retention, a batch at a time. */
export function createJanitor(ports: JanitorPorts): Readonly<Record<'replayFeed' | 'workOnJobs' | 'prune', JanitorPass>> {
  const { write, clock, meter, holds, inTurn, onQueued, onReordered, reprocessed, retired, hasRoom } = ports
  return {
    async replayFeed() {
      if (!holds()) return 'idle'
      const { queued, isDone } = await write.replayFeed({ limit: CATCH_UP_EVENTS, nowMs: clock.now() })
      if (queued > 0) onQueued()
      return isDone ? 'idle' : 'busy'
    },
    async workOnJobs() {
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
    async prune() {
      if (!holds() || !hasRoom()) return 'idle'
      const { isDone, hasRetired, hasReordered } = await inTurn(() => write.prune({ nowMs: clock.now() }))
      if (hasRetired) retired()
      if (hasReordered) onReordered()
      return isDone ? 'idle' : 'busy'
    },
  }
}

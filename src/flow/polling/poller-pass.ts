import type { Log } from '../ports.ts'
import { type ClockRollbackPorts, createClockRollback } from './clock-rollback.ts'
import type { SharedModel } from './shared-model.ts'

export interface PollerPassPorts extends Pick<ClockRollbackPorts, 'write' | 'clock'> {
  /** Makes the polls that are due. */
  readonly poll: () => Promise<'busy' | 'idle'>
  /** Whether this replica is the poller. */
  readonly isPoller: () => boolean
  /** `lost`: there is no working store. Otherwise, whatever it is, nothing more may be recorded; null: all is well. */
  readonly storeTrouble: () => string | null
  /** How replicas share the model of the carrier; null: nobody shares the store. */
  readonly model: Pick<SharedModel, 'follow' | 'fold'> | null
  /** Looks at the health of the pushes. */
  readonly lookAtPushes: () => Promise<void>
  /** The schedule moved to earlier times with the clock. */
  readonly onShifted: () => void
  readonly log: Log
}

export interface PollerPass {
  /** One pass of the poller, if this replica is the poller and has a store. */
  pass(): Promise<'busy' | 'idle'>
  /** Moves the schedule if the clock was put back. */
  followClock(): Promise<void>
  /** This replica has become the poller: the next pass first takes over from the poller before. */
  begin(): void
}

/** @param lastSeenMs the wall clock as the last run saw it, epoch milliseconds; null: there was none. */
export function createPollerPass(ports: PollerPassPorts, lastSeenMs: number | null): PollerPass {
  const { poll, model } = ports
  let followClock = createClockRollback(ports, lastSeenMs)
  let isTakeoverDue = false

  /** After a failure it is tried again. */
  async function takeOver(): Promise<void> {
    if (!isTakeoverDue) return
    // The poller before has followed what the clock did until now.
    followClock = createClockRollback(ports, null)
    await model?.follow({ resume: true })
    isTakeoverDue = false
  }

  return {
    followClock: () => followClock(),
    begin() {
      isTakeoverDue = true
    },
    async pass() {
      // Without a working store a poll would waste the carrier's budget.
      if (ports.storeTrouble() === 'lost' || !ports.isPoller()) return 'idle'
      await takeOver()
      await followClock()
      await model?.fold()
      const result = ports.storeTrouble() === null ? await poll() : 'idle'
      await ports.lookAtPushes()
      return result
    },
  }
}

import type { Relay } from '../relay.ts'
import { type ClockRollbackPorts, createClockRollback } from './clock-rollback.ts'
import type { SharedModel } from './shared-model.ts'

export interface PollerPassPorts extends Pick<ClockRollbackPorts, 'write' | 'clock'>, Pick<Relay, 'log'> {
  readonly poll: () => Promise<'busy' | 'idle'>
  readonly isPoller: () => boolean
  /** Returns null if there is no trouble. `lost`: the store does not work. Any other text: nothing may be recorded. */
  readonly storeTrouble: () => string | null
  /** What the replicas have learnt about the carrier, together; null: no other replica shares the store. */
  readonly model: Pick<SharedModel, 'load' | 'fold'> | null
  /** Saves what was learnt about pushes, and logs when their health changes. */
  readonly lookAtPushes: () => Promise<void>
  /** Called when the schedule was moved to earlier times, because the clock was put back. */
  readonly onShifted: () => void
}

export interface PollerPass {
  /** Makes one pass if this replica is the poller and the store works. */
  pass(): Promise<'busy' | 'idle'>
  /** Moves the schedule if the clock was put back. */
  adjustToClock(): Promise<void>
  /** Call it when this replica becomes the poller. Its next pass first takes over from the previous poller. */
  begin(): void
}

/** @param lastSeenMs the last wall-clock time that the relay saw before it was restarted, epoch milliseconds; null: it never ran before. */
export function createPollerPass(ports: PollerPassPorts, lastSeenMs: number | null): PollerPass {
  const { poll, model } = ports
  let adjustToClock = createClockRollback(ports, lastSeenMs)
  let isTakeoverDue = false

  /** After a failure, the next pass tries again. */
  async function takeOver(): Promise<void> {
    if (!isTakeoverDue) return
    // Start with the present clock, because the previous poller has handled all changes of the clock until now.
    adjustToClock = createClockRollback(ports, null)
    await model?.load({ resume: true })
    isTakeoverDue = false
  }

  return {
    adjustToClock: () => adjustToClock(),
    begin() {
      isTakeoverDue = true
    },
    async pass() {
      // If the store does not work, polls would only waste the carrier's budget.
      if (ports.storeTrouble() === 'lost' || !ports.isPoller()) return 'idle'
      await takeOver()
      await adjustToClock()
      await model?.fold()
      const result = ports.storeTrouble() === null ? await poll() : 'idle'
      await ports.lookAtPushes()
      return result
    },
  }
}

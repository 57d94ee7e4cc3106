import type { PushHealth } from '../../domain/polling/push-health.ts'
import type { Relay, Writes } from '../relay.ts'
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

interface ClockRollbackPorts extends Pick<Relay, 'clock' | 'log'>, Writes<'shiftSchedule'> {
  /** Called when the schedule was moved to earlier times, so that timers can be set again. */
  readonly onShifted: () => void
}

/** Smaller corrections of a clock are normal and are ignored. */
const JUMP_MIN_MS = 30_000
/** One transaction moves this many parcels. */
const BATCH = 500

/**
 * Moves the schedule back when the wall clock is put back, because polls and deliveries are planned in wall time and would come too late. The
 * schedule stays if the clock is put forward. Many polls then become due at once, but the carrier's budget limits them.
 *
 * Call it before each pass of the poller, and also regularly, because deliveries depend on the clock, too. Calls at the same time share one
 * check.
 *
 * @param lastSeenMs the last wall-clock time that the relay saw before it was restarted, epoch milliseconds; null: it never ran before.
 */
export function createClockRollback({ write, clock, log, onShifted }: ClockRollbackPorts, lastSeenMs: number | null): () => Promise<void> {
  let seen = { wallMs: Math.max(clock.now(), lastSeenMs ?? 0), monotonicMs: clock.monotonic() }
  /** The rest of a shift that a failure of the store interrupted. The next call continues it. Null: none. */
  let left: { readonly byMs: number; readonly sinceMs: number; readonly afterParcelId: number } | null = null

  let running: Promise<void> | null = null

  async function shift(): Promise<void> {
    const now = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    const backMs = Math.round(now.monotonicMs - seen.monotonicMs - (now.wallMs - seen.wallMs))
    if (backMs >= JUMP_MIN_MS && left === null) {
      log.warn({ backMs }, 'the clock was put back: all polls and deliveries are moved back with it')
      left = { byMs: backMs, sinceMs: Math.floor(now.wallMs - (now.monotonicMs - seen.monotonicMs)), afterParcelId: 0 }
      seen = now
    } else if (backMs < JUMP_MIN_MS) seen = now
    while (left !== null) {
      const { afterParcelId, ...jump }: { readonly byMs: number; readonly sinceMs: number; readonly afterParcelId: number } = left
      const last = await write.shiftSchedule({ ...jump, nowMs: clock.now(), afterParcelId, limit: BATCH })
      left = last === null ? null : { ...jump, afterParcelId: last }
      if (left === null) onShifted()
    }
  }

  return () => {
    running ??= shift().finally(() => {
      running = null
    })
    return running
  }
}

export interface PushHealthMonitor {
  health(): PushHealth
  /** Saves what was learnt, and logs when the health changes. Call it after each pass of the poller. */
  update(): Promise<void>
  /** Reads the health that another replica has saved. */
  look(): Promise<void>
}

/** Opens the monitor, which starts with the health that was saved last. */
export async function openPushHealthMonitor(
  ports: Pick<Relay, 'log'> & Writes<'pushChannel' | 'checkpointModel'> & { readonly wake: () => void },
): Promise<PushHealthMonitor> {
  let { health } = await ports.write.pushChannel()
  return {
    health: () => health,
    async look() {
      health = (await ports.write.pushChannel()).health
    },
    async update() {
      const before = health
      const news = await ports.write.checkpointModel()
      health = news.health
      if (news.eventQueued) ports.wake()
      if (health === before) return
      if (health === 'silent')
        ports.log.warn(
          { before },
          'no pushes with news arrive although the carrier scans (none come, or none are understood): polls fall back to their full intervals',
        )
      else ports.log.info({ before, pushHealth: health }, 'the health of the carrier’s pushes has changed')
    },
  }
}

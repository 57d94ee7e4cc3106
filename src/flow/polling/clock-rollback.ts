import type { Clock, Log } from '../ports.ts'
import type { WriteSide } from '../write-side.ts'

export interface ClockRollbackPorts {
  readonly write: Pick<WriteSide, 'shiftSchedule'>
  readonly clock: Clock
  readonly log: Log
  /** What is planned came nearer: whoever waits for a time must look again. */
  readonly onShifted: () => void
}

/** A clock is corrected by less all the time. */
const JUMP_MIN_MS = 30_000
/** Parcels in one transaction. */
const BATCH = 500

/**
 * Keeps the schedule where it is when the wall clock is put back: checks and deliveries are planned in wall time, and would come that much too late. A clock
 * put forward needs nothing of the kind: what that makes due waits for the budget like everything else. To be called before each pass of the
 * poller, and often besides: deliveries wait for the clock too. Who calls while it is at work waits for the same end.
 * @param lastSeenMs the wall clock as an earlier run last saw it, epoch milliseconds; null: there was none.
 */
export function createClockRollback({ write, clock, log, onShifted }: ClockRollbackPorts, lastSeenMs: number | null): () => Promise<void> {
  let seen = { wallMs: Math.max(clock.now(), lastSeenMs ?? 0), monotonicMs: clock.monotonic() }
  /** Shifts that are not done yet: a store that failed meanwhile is asked again. */
  let left: { readonly byMs: number; readonly afterParcelId: number } | null = null

  let following: Promise<void> | null = null

  async function follow(): Promise<void> {
    const now = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    const backMs = Math.round(now.monotonicMs - seen.monotonicMs - (now.wallMs - seen.wallMs))
    if (backMs >= JUMP_MIN_MS && left === null) {
      log.warn({ backMs }, 'the clock was put back: all checks and deliveries are put back with it')
      left = { byMs: backMs, afterParcelId: 0 }
      seen = now
    } else if (backMs < JUMP_MIN_MS) seen = now
    while (left !== null) {
      const { byMs, afterParcelId }: { readonly byMs: number; readonly afterParcelId: number } = left
      const last = await write.shiftSchedule({ byMs, nowMs: now.wallMs, afterParcelId, limit: BATCH })
      left = last === null ? null : { byMs, afterParcelId: last }
      if (left === null) onShifted()
    }
  }

  return () => {
    following ??= follow().finally(() => {
      following = null
    })
    return following
  }
}

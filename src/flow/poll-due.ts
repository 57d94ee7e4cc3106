import type { Clock, Log, Meter, WriteSide } from './ports.ts'
import type { Refresh } from './refresh.ts'

export interface PollDuePorts {
  readonly write: Pick<WriteSide, 'claimDuePolls' | 'settleMissedPushes'>
  readonly refresh: Pick<Refresh, 'poll'>
  readonly meter: Pick<Meter, 'missedPush'>
  readonly clock: Clock
  readonly log: Log
  /** Whether the schedule must ask nothing at this time (`poll.quietHours`). */
  readonly isQuiet: (nowMs: number) => boolean
  /** How many may be asked about at this moment, besides `concurrency`: none while a failing carrier rests, one to probe it. */
  readonly askable?: () => number
}

/** A poller that dies lets its parcels lapse back to due after this. Longer than any one poll may take. */
const LEASE_MS = 5 * 60_000

/**
 * One pass of the poller: settles what was missed, claims the most overdue parcels, as many as may be asked about at once, and asks. `busy`:
 * there may be more. When the carrier cannot be asked, nothing more is claimed until the next wake.
 */
export function createPollDue(ports: PollDuePorts, { concurrency }: { readonly concurrency: number }): () => Promise<'busy' | 'idle'> {
  const { write, refresh, clock, log } = ports
  return async () => {
    const nowMs = clock.now()
    for (const { eventAtMs, foundAtMs, parcelId } of await write.settleMissedPushes(nowMs)) {
      ports.meter.missedPush(Math.max(0, foundAtMs - eventAtMs))
      log.info({ parcelId, lateMs: foundAtMs - eventAtMs }, 'a push was missed: a poll brought its entry')
    }
    if (ports.isQuiet(nowMs)) return 'idle'
    const limit = Math.min(concurrency, ports.askable?.() ?? concurrency)
    if (limit === 0) return 'idle'
    const due = await write.claimDuePolls({ nowMs, limit, leaseMs: LEASE_MS })
    const refreshed = await Promise.all(due.map((one) => refresh.poll(one)))
    if (refreshed.includes('unavailable')) return 'idle'
    return due.length === limit ? 'busy' : 'idle'
  }
}

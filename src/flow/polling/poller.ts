import type { DuePoll } from '../../domain/polling/poll.ts'
import type { Clock, Log, Meter } from '../ports.ts'
import type { WriteSide } from '../write-side.ts'
import { createMissedPushLog } from './missed-push-log.ts'
import type { PollsUnderWay } from './polls-under-way.ts'
import type { Refresh } from './refresh.ts'

export interface PollerPorts {
  readonly write: Pick<WriteSide, 'claimDuePolls' | 'settleMissedPushes'>
  readonly refresh: Pick<Refresh, 'poll'>
  readonly asking: PollsUnderWay
  readonly meter: Pick<Meter, 'missedPush'>
  readonly clock: Clock
  readonly log: Log
  /** Whether the schedule must ask nothing at this time (`poll.quietHours`). */
  readonly isQuiet: (nowMs: number) => boolean
  /** How many may be asked about at this moment, besides `concurrency`: none while a failing carrier rests, one to probe it. */
  readonly askable?: () => number
}

/** What was claimed and got lost falls due again after this; what is still being asked about does not, however long it waits for its turn. */
const LEASE_MS = 5 * 60_000

/** So much of the room must be free before more is claimed: a claim each time one ends would ask the store too often. */
const FREE_PART = 1 / 4

/**
 * One pass of the poller: settles what was missed, waits until there is room, and claims the most overdue parcels for it. What hangs takes
 * room and holds up no other. `busy`: there may be more, and what was begun goes on meanwhile. `idle`: nothing more is due, or the carrier
 * cannot be asked, so that nothing more is claimed until the next wake; then all that was begun has ended.
 */
export function createPoller(ports: PollerPorts, { concurrency }: { readonly concurrency: number }): () => Promise<'busy' | 'idle'> {
  const { write, refresh, asking, clock, log } = ports
  const inFlight = new Set<Promise<void>>()
  const logMissed = createMissedPushLog(ports)
  let isRefused = false

  function start(due: DuePoll): void {
    const asked: Promise<void> = asking
      .during(due.parcelId, () => refresh.poll(due))
      .then(
        (refreshed) => {
          if (refreshed === 'unavailable') isRefused = true
        },
        (err: unknown) => {
          isRefused = true
          log.error({ err, parcelId: due.parcelId }, 'a poll failed; no more are made until the next wake')
        },
      )
      .finally(() => inFlight.delete(asked))
    inFlight.add(asked)
  }

  /** Looked at anew after each wait: meanwhile quiet hours may have begun, or the carrier failed. */
  function limit(): number {
    return ports.isQuiet(clock.now()) ? 0 : Math.min(concurrency, ports.askable?.() ?? concurrency)
  }

  async function rest(): Promise<'idle'> {
    await Promise.all(inFlight)
    isRefused = false
    return 'idle'
  }

  return async () => {
    const nowMs = clock.now()
    const missed = await write.settleMissedPushes(nowMs)
    for (const { eventAtMs, foundAtMs } of missed) ports.meter.missedPush(Math.max(0, foundAtMs - eventAtMs))
    logMissed(missed)
    while (!isRefused && inFlight.size > 0 && limit() - inFlight.size < limit() * FREE_PART) await Promise.race(inFlight)
    const room = limit() - inFlight.size
    if (isRefused || room <= 0) return await rest()
    const due = await write.claimDuePolls({ nowMs: clock.now(), limit: room, leaseMs: LEASE_MS, asking: asking.list() })
    due.forEach(start)
    return due.length === room ? 'busy' : await rest()
  }
}

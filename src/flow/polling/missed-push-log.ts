import type { MissedPush } from '../../domain/polling/poll.ts'
import type { Part } from '../relay.ts'

const EVERY_MS = 60_000
/** A line names this many parcels, enough to investigate. `relay_missed_pushes_total` counts all missed pushes. */
const IDENTIFIERS_MAX = 5

/**
 * Logs missed pushes, at most one line per minute: their number, the longest time from an event to the poll that found it, and some of the
 * parcels. Call it at every pass, even without missed pushes.
 */
export function createMissedPushLog({
  log,
  clock,
}: Part<'clock', 'monotonic'> & Part<'log', 'info'>): (missed: readonly MissedPush[]) => void {
  let waiting: readonly MissedPush[] = []
  let count = 0
  let loggedAtMs = Number.NEGATIVE_INFINITY

  return (missed) => {
    count += missed.length
    waiting = [...waiting, ...missed].sort((a, b) => latenessOf(b) - latenessOf(a)).slice(0, IDENTIFIERS_MAX)
    if (count === 0 || clock.monotonic() - loggedAtMs < EVERY_MS) return
    loggedAtMs = clock.monotonic()
    const identifiers = [...new Set(waiting.map(({ identifier }) => identifier))].filter((one) => one !== null)
    const latestMs = Math.max(...waiting.map(latenessOf))
    log.info({ count, identifiers, latestMs }, 'pushes were missed: polls found their entries')
    count = 0
    waiting = []
  }
}

function latenessOf({ eventAtMs, foundAtMs }: MissedPush): number {
  return foundAtMs - eventAtMs
}

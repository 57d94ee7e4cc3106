import { DAY_MS } from '../../support/runner/constants.ts'
import type { Looked } from './checks.ts'
import type { World } from './world.ts'

/** By default, the relay stops polling a parcel this long after its delivery. */
const TAIL_DAYS = 3

/** Returns the current state of a world for the checks. */
export function looked({ relay, store, parcels, violations, time, lengths }: World): Looked {
  // Days on which the carrier failed or was silent do not count towards staleness, so a parcel may be polled for up to half as long again.
  const polledOnMs = (Math.max(TAIL_DAYS, 1.5 * lengths.staleAfterDays) + 1) * DAY_MS
  return { relay, store, parcels, violations, nowMs: time.now(), historyMs: lengths.historyDays * DAY_MS, polledOnMs }
}

import { DAY_MS } from '../../support/runner/constants.ts'
import type { Looked } from './checks.ts'
import type { World } from './world.ts'

/** After a delivery the relay asks for the last time, by default. */
const TAIL_DAYS = 3

/** A world as the checks see it now. */
export function looked({ relay, store, parcels, violations, time, lengths }: World): Looked {
  const polledOnMs = (Math.max(TAIL_DAYS, lengths.staleAfterDays) + 1) * DAY_MS
  return { relay, store, parcels, violations, nowMs: time.now(), historyMs: lengths.historyDays * DAY_MS, polledOnMs }
}

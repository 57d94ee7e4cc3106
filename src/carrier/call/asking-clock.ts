import type { CarrierMemory } from '../../domain/polling/carrier-memory.ts'
import type { Clock } from '../../flow/ports.ts'

/** More than passes between two writes of the memory: what a killed run asked after the last is not in it. */
const UNWRITTEN_MS = 60_000

/**
 * Stamps questions. The answer that was asked last is believed, so no question is stamped earlier than the one before, whatever the clock does, over
 * restarts and kills too.
 */
export interface AskingClock {
  stamp(): number
  /** The last stamp. */
  lastMs(): number
}

/** `memory`: what the last run has written; null: there was none. */
export function createAskingClock(clock: Pick<Clock, 'now'>, memory: Pick<CarrierMemory, 'atMs' | 'askedAtMs'> | null): AskingClock {
  let last = memory === null ? 0 : lastOf(memory, clock.now())
  return {
    stamp() {
      last = Math.max(clock.now(), last + 1)
      return last
    },
    lastMs: () => last,
  }
}

/** Unless the clock was put back meanwhile, it shows later times by itself than any that the run before had no time to write. */
function lastOf({ atMs, askedAtMs = atMs }: Pick<CarrierMemory, 'atMs' | 'askedAtMs'>, nowMs: number): number {
  return nowMs < atMs ? Math.max(askedAtMs, atMs) + UNWRITTEN_MS : askedAtMs
}

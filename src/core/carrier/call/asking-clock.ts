import type { CarrierMemory } from '../../domain/polling/carrier-memory.ts'
import type { Clock } from '../../flow/ports.ts'

/** The relay saves its state more often than this, so less than this time passes between its last save and a kill. */
const UNWRITTEN_MS = 60_000

/**
 * Gives each question to the carrier a time stamp. If two answers differ, the answer to the later question counts. So every stamp is later than the
 * one before, even if the clock is set back or the process is killed and restarted.
 */
export interface AskingClock {
  stamp(): number
  /** The last stamp, epoch milliseconds. */
  lastMs(): number
}

/** `memory`: the state that was last saved; null: there is none. */
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

/** If the clock was set back since the last save, adds `UNWRITTEN_MS`, because some later stamps may not have been saved. */
function lastOf({ atMs, askedAtMs = atMs }: Pick<CarrierMemory, 'atMs' | 'askedAtMs'>, nowMs: number): number {
  return nowMs < atMs ? Math.max(askedAtMs, atMs) + UNWRITTEN_MS : askedAtMs
}

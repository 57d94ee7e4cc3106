import type { CarrierMemory } from '../../domain/polling/call-budget.ts'
import type { Clock } from '../../flow/ports.ts'

/** Compares the carrier's clock with ours, by the `Date` of its answers. */
export type CarrierTime = ReturnType<typeof createCarrierTime>

/** `Date` has whole seconds, so half a second is cut off on average. */
const CUT_OFF_MS = 500

export function createCarrierTime(clock: Clock) {
  /** The carrier's clock minus our monotonic clock. */
  let carrierMs: number | null = null
  return {
    /** Notes an answer. `date`: its `Date` header; null: it has none. `sentAtMs`: when its request was sent, epoch milliseconds. */
    answered(date: string | null, sentAtMs: number) {
      const told = date === null ? Number.NaN : Date.parse(date)
      if (Number.isNaN(told)) return
      // The carrier read its clock between the request and now, so compare with the middle of that time.
      const nowMs = clock.now()
      carrierMs = told + CUT_OFF_MS + (nowMs - sentAtMs) / 2 - clock.monotonic()
    },
    /**
     * By how many milliseconds the carrier's clock is ahead of ours; negative: behind. It goes on from the carrier's last answer by the monotonic
     * clock, so a jump of our clock shows at once. Null: no answer had a time yet.
     */
    aheadMs: (): number | null => (carrierMs === null ? null : Math.round(carrierMs + clock.monotonic() - clock.now())),
  }
}

/** The relay saves its state more often than this, so less than this time passes between its last save and a kill. */
const UNWRITTEN_MS = 60_000

/**
 * Gives each question to the carrier a time stamp. If two answers differ, the answer to the later question counts. So every stamp is later than the
 * one before, even if the clock is set back or the process is killed and restarted.
 */
export type AskingClock = ReturnType<typeof createAskingClock>

/** `memory`: the state that was last saved; null: there is none. */
export function createAskingClock(clock: Pick<Clock, 'now'>, memory: Pick<CarrierMemory, 'atMs' | 'askedAtMs'> | null) {
  let last = memory === null ? 0 : lastOf(memory, clock.now())
  return {
    stamp() {
      last = Math.max(clock.now(), last + 1)
      return last
    },
    /** The last stamp, epoch milliseconds. */
    lastMs: () => last,
  }
}

/** If the clock was set back since the last save, adds `UNWRITTEN_MS`, because some later stamps may not have been saved. */
function lastOf({ atMs, askedAtMs = atMs }: Pick<CarrierMemory, 'atMs' | 'askedAtMs'>, nowMs: number): number {
  return nowMs < atMs ? Math.max(askedAtMs, atMs) + UNWRITTEN_MS : askedAtMs
}

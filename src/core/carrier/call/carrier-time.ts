import type { Clock } from '../../flow/ports.ts'

/** Compares the carrier's clock with ours, by the `Date` of its answers. */
export interface CarrierTime {
  /** Notes an answer. `date`: its `Date` header; null: it has none. `sentAtMs`: when its request was sent, epoch milliseconds. */
  answered(date: string | null, sentAtMs: number): void
  /**
   * By how many milliseconds the carrier's clock is ahead of ours; negative: behind. It goes on from the carrier's last answer by the monotonic
   * clock, so a jump of our clock shows at once. Null: no answer had a time yet.
   */
  aheadMs(): number | null
}

/** `Date` has whole seconds, so half a second is cut off on average. */
const CUT_OFF_MS = 500

export function createCarrierTime(clock: Clock): CarrierTime {
  /** The carrier's clock minus our monotonic clock. */
  let carrierMs: number | null = null
  return {
    answered(date, sentAtMs) {
      const told = date === null ? Number.NaN : Date.parse(date)
      if (Number.isNaN(told)) return
      // The carrier read its clock between the request and now, so compare with the middle of that time.
      const nowMs = clock.now()
      carrierMs = told + CUT_OFF_MS + (nowMs - sentAtMs) / 2 - clock.monotonic()
    },
    aheadMs: () => (carrierMs === null ? null : Math.round(carrierMs + clock.monotonic() - clock.now())),
  }
}

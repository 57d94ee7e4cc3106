import type { Clock } from '../../flow/ports.ts'

/** Compares the carrier's clock with ours, by the `Date` of its answers. */
export interface CarrierTime {
  /** Notes an answer. `date`: its `Date` header; null: it has none. `sentAtMs`: when its request was sent, epoch milliseconds. */
  answered(date: string | null, sentAtMs: number): void
  /** By how many milliseconds the carrier's clock was ahead of ours at its last answer; negative: behind. Null: no answer had a time yet. */
  aheadMs(): number | null
}

/** `Date` has whole seconds, so half a second is cut off on average. */
const CUT_OFF_MS = 500

export function createCarrierTime(clock: Pick<Clock, 'now'>): CarrierTime {
  let aheadMs: number | null = null
  return {
    answered(date, sentAtMs) {
      const told = date === null ? Number.NaN : Date.parse(date)
      if (Number.isNaN(told)) return
      // The carrier read its clock between the request and now, so compare with the middle of that time.
      aheadMs = Math.round(told + CUT_OFF_MS - (sentAtMs + clock.now()) / 2)
    },
    aheadMs: () => aheadMs,
  }
}

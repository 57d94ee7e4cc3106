import type { ParcelPlan } from './parcel-plan.ts'

export interface Squeeze {
  /** A time in the plan. */
  readonly fromMs: number
  /** The time that replaces it. */
  readonly toMs: number
  /** How many times faster the plan runs: each distance from `fromMs` is divided by this factor. */
  readonly factor: number
}

/** Moves a parcel's plan in time and speeds it up. Instants keep their order, and equal instants stay equal. */
export function squeezed(plan: ParcelPlan, { fromMs, toMs, factor }: Squeeze): ParcelPlan {
  const moved = (ms: number): number => {
    const atMs = toMs + Math.round((ms - fromMs) / factor)
    // Avoid whole seconds, because a time without milliseconds counts as exact only to the second.
    return atMs % 1000 === 0 ? atMs + 1 : atMs
  }
  const { scans, amendments, laterTrackingId } = plan
  return {
    ...plan,
    scans: scans.map((scan) => ({ ...scan, atMs: moved(scan.atMs), publishedAtMs: moved(scan.publishedAtMs) })),
    amendments: amendments.map((amendment) => ({ ...amendment, atMs: moved(amendment.atMs) })),
    laterTrackingId: laterTrackingId === null ? null : { ...laterTrackingId, atMs: moved(laterTrackingId.atMs) },
  }
}

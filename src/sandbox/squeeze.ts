import type { ParcelPlan } from './parcel-plan.ts'

export interface Squeeze {
  /** A time in the plan. */
  readonly fromMs: number
  /** The time that replaces it. */
  readonly toMs: number
  /** Later times follow this many times faster. */
  readonly factor: number
}

/** Moves and speeds up a parcel's plan. Order and equality of instants are kept. */
export function squeezed(plan: ParcelPlan, { fromMs, toMs, factor }: Squeeze): ParcelPlan {
  const moved = (ms: number): number => {
    const atMs = toMs + Math.round((ms - fromMs) / factor)
    // Avoid whole seconds, which would make a push look like a truncated pull.
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

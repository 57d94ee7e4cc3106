import type { ParcelPlan } from './parcel-plan.ts'

export interface Squeeze {
  /** This moment of the plan ... */
  readonly fromMs: number
  /** ... becomes this one, */
  readonly toMs: number
  /** and all after it come so many times sooner. */
  readonly factor: number
}

/** The same life lived faster, at another time: order and equality of instants are kept. */
export function squeezed(plan: ParcelPlan, { fromMs, toMs, factor }: Squeeze): ParcelPlan {
  const moved = (ms: number): number => {
    const atMs = toMs + Math.round((ms - fromMs) / factor)
    // Never on a whole second, or a push could not be told from a truncated pull.
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

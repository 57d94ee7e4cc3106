const DAY_MS = 86_400_000

/** Operators hear of a certificate of the relay this long before it expires. */
export const EXPIRING_MS = 14 * DAY_MS

/** A certificate that the relay shows. */
export interface OwnCertificate {
  /** Who sees it, such as `public listener` or `endpoint shop`. */
  readonly shownBy: string
  /** The endpoint that sees it; null: those who connect to a listener see it. */
  readonly endpoint: string | null
  /** When it expires, epoch milliseconds. */
  readonly untilMs: number
}

export function daysLeft(untilMs: number, nowMs: number): number {
  return Math.floor((untilMs - nowMs) / DAY_MS)
}

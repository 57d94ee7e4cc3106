/**
 * The part of the budget's state that must survive a restart or a kill, so that a crash loop cannot exceed the carrier's limits (DOMAIN
 * 6.4).
 */
export interface CarrierMemory {
  /** When it was written, epoch milliseconds. */
  readonly atMs: number
  /** The time that the last question was stamped with; absent: not known. */
  readonly askedAtMs?: number
  readonly days: readonly DayCalls[]
  /** Until when no call is made because the carrier asked for a pause, epoch milliseconds; null: it did not. */
  readonly pausedUntilMs: number | null
  /** Until when the token endpoint is not called because it asked for a pause; null: it did not. */
  readonly tokenPausedUntilMs: number | null
  /** The refusal of the credentials; null: they are not refused. */
  readonly refusal: CredentialRefusal | null
}

/** The calls of one UTC day, including those that may be made before the next write. */
export interface DayCalls {
  /** Days since the epoch. */
  readonly day: number
  readonly calls: number
}

/** Who refused the credentials: the token endpoint the password, or the status API a token that the password had brought. */
export type RefusedBy = 'token_endpoint' | 'status_api'

/** Credentials that the carrier refused. */
export interface CredentialRefusal {
  /** The number of attempts since the credentials last worked. */
  readonly tries: number
  /** When they may be tried again, epoch milliseconds. */
  readonly untilMs: number
  /** When they were refused last, epoch milliseconds; absent: not known. */
  readonly atMs?: number | null
  /** Who refused them; absent: not known. */
  readonly by?: RefusedBy | null
  /**
   * A fingerprint that shows whether the password is still the refused one: a salt and a few bytes of its digest, too few to recover it.
   */
  readonly mark: { readonly salt: string; readonly digest: string } | null
}

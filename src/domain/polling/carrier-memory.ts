/**
 * The part of the budget's state that survives a restart or a kill, so that a crash loop cannot exceed the carrier's limits (DOMAIN 6.4).
 */
export interface CarrierMemory {
  /** The time of writing, epoch milliseconds. */
  readonly atMs: number
  /** The time that was given to the last question; absent: not known. */
  readonly askedAtMs?: number
  readonly days: readonly DayCalls[]
  /** The carrier asked for a pause until then, epoch milliseconds; null: it did not. */
  readonly pausedUntilMs: number | null
  /** The token endpoint asked for a pause until then; null: it did not. */
  readonly tokenPausedUntilMs: number | null
  /** The refusal of the credentials; null: they are not refused. */
  readonly refusal: CredentialRefusal | null
}

/** The calls of one UTC day. They include the calls that may be made before the next write. */
export interface DayCalls {
  /** Days since the epoch. */
  readonly day: number
  readonly calls: number
}

/** Who refused: the token endpoint refused the password, or the status API refused a token. */
export type RefusedBy = 'token_endpoint' | 'status_api'

/** Credentials that the carrier refused. */
export interface CredentialRefusal {
  /** Attempts since the credentials last worked. */
  readonly tries: number
  /** When they may be tried again, epoch milliseconds. */
  readonly untilMs: number
  /** When they were refused last, epoch milliseconds; absent: not known. */
  readonly atMs?: number | null
  /** Who refused them; absent: not known. */
  readonly by?: RefusedBy | null
  /** Shows whether the password is still the refused one: a salt and a few bytes of a digest, too few to recover the password. */
  readonly mark: { readonly salt: string; readonly digest: string } | null
}

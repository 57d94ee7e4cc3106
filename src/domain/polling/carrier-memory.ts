/** What must outlive a restart or a kill, so that a crash loop cannot exceed what the carrier accepts (DOMAIN 6.4). */
export interface CarrierMemory {
  /** When it was written, epoch milliseconds. */
  readonly atMs: number
  readonly days: readonly DayCalls[]
  /** Until when nothing leaves, because the carrier asked for it, epoch milliseconds; null: it did not. */
  readonly pausedUntilMs: number | null
  /** The same of the token endpoint, for the credentials alone. */
  readonly tokenPausedUntilMs: number | null
  /** Refused credentials; null: they are not. */
  readonly refusal: CredentialRefusal | null
}

/** Calls of one UTC day: those that were made, and those that may be made without being written down again. */
export interface DayCalls {
  /** Days since the epoch. */
  readonly day: number
  readonly calls: number
}

export interface CredentialRefusal {
  /** Tries since the credentials last worked. */
  readonly tries: number
  /** When they may be presented again, epoch milliseconds. */
  readonly untilMs: number
  /** Tells whether the password is still the one that was refused: a salt and a few bytes of its digest, too few to learn it from. */
  readonly mark: { readonly salt: string; readonly digest: string } | null
}

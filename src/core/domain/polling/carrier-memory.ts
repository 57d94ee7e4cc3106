/** The facts about calls that the relay keeps over a restart, so that crashes cannot make it exceed the carrier's limits (DOMAIN 6.4). */
export interface CarrierMemory {
  /** When this was written, epoch milliseconds. */
  readonly atMs: number
  /** When the last recorded question was asked; absent: not known. */
  readonly askedAtMs?: number
  readonly days: readonly DayCalls[]
  /** Until when the carrier asked to pause; null: it did not ask. */
  readonly pausedUntilMs: number | null
  readonly tokenPausedUntilMs: number | null
  /** Null: the carrier does not refuse the credentials. */
  readonly refusal: CredentialRefusal | null
}

/** The calls of one UTC day, including those that the relay may make before it writes again. */
export interface DayCalls {
  /** Days since the epoch. */
  readonly day: number
  readonly calls: number
}

/** The part of the carrier that refused: the token endpoint refused the password, or the status API refused a token. */
export type RefusedBy = 'token_endpoint' | 'status_api'

export interface CredentialRefusal {
  /** How many attempts were made since the credentials last worked. */
  readonly tries: number
  /** When the credentials may be tried again. */
  readonly untilMs: number
  /** When the credentials were last refused; absent: not known. */
  readonly atMs?: number | null
  readonly by?: RefusedBy | null
  /** Shows whether the password has changed since the refusal: a salt and a few bytes of a digest, too few to find the password. */
  readonly mark: { readonly salt: string; readonly digest: string } | null
}

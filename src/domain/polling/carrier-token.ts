import type { UnavailableReason } from './carrier-answer.ts'
import type { CredentialRefusal } from './carrier-memory.ts'

/** The token that all replicas share, and the state of the credentials. Durations count from when the record is read. */
export interface TokenRecord extends TokenState {
  /** A number that changes with each new token. */
  readonly version: number
  /** The encrypted token; null: there is no token. */
  readonly sealed: string | null
}

export interface TokenState {
  /** How many logins the token endpoint has answered, with a token or a refusal, since a token last worked. */
  readonly tries: number
  /** How many token requests in a row had no usable answer. */
  readonly troubles: number
  /** Why the last token request failed; null: it did not fail, or the reason is not known. */
  readonly trouble: UnavailableReason | null
  /** For how long the credentials must not be tried again because the carrier refused them; null: they are not refused. */
  readonly refusedForMs: number | null
  readonly mark: CredentialRefusal['mark']
  /** For how long no token may be requested, for a reason other than a refusal. */
  readonly pausedForMs: number
}

import type { UnavailableReason } from './carrier-answer.ts'
import type { CredentialRefusal } from './carrier-memory.ts'

/** The token that all replicas share, and what is known of the credentials. Durations in milliseconds, from when it was read. */
export interface TokenRecord extends TokenState {
  /** Names the token: it changes with it. */
  readonly version: number
  /** The token, encrypted; null: there is none. */
  readonly sealed: string | null
}

export interface TokenState {
  /** Attempts since a token last worked. */
  readonly tries: number
  /** Requests in a row that brought no answer. */
  readonly troubles: number
  /** Why the last of them brought none; null: it is not known, or there was none. */
  readonly trouble: UnavailableReason | null
  /** The credentials are refused, and may be tried again after this time; null: they are not refused. */
  readonly refusedForMs: number | null
  readonly mark: CredentialRefusal['mark']
  /** How long no token may be requested for another reason. */
  readonly pausedForMs: number
}

import type { UnavailableReason } from './carrier-answer.ts'
import type { CredentialRefusal } from './carrier-memory.ts'

/** The token that all replicas share, and what is known about the credentials. Durations in milliseconds, counted from when it was read. */
export interface TokenRecord extends TokenState {
  /** Changes with each new token. */
  readonly version: number
  /** The encrypted token; null: there is none. */
  readonly sealed: string | null
}

export interface TokenState {
  /** Attempts since a token last worked. */
  readonly tries: number
  /** Requests in a row without an answer. */
  readonly troubles: number
  /** Why the last of them failed; null: not known, or none failed. */
  readonly trouble: UnavailableReason | null
  /** The credentials are refused, and may be tried again after this time; null: they are not refused. */
  readonly refusedForMs: number | null
  readonly mark: CredentialRefusal['mark']
  /** How long no token may be requested for any other reason. */
  readonly pausedForMs: number
}

import type { UnavailableReason } from './carrier-answer.ts'
import type { CredentialRefusal } from './carrier-memory.ts'

/** What one replica tells the budget that all replicas share, and what it wants of it. Durations in milliseconds. */
export interface BudgetRequest {
  /** The replica, by a name that no other has. */
  readonly replica: string
  /** Names for the places wanted, as many as `apps` and `schedule` together; the first ones are granted. */
  readonly names: readonly string[]
  /** How many calls of apps and of the schedule wait in this replica. */
  readonly apps: number
  readonly schedule: number
  /** The places whose calls have ended. */
  readonly ended: readonly string[]
  /** How long the carrier asked every caller to pause, from now on; 0: it did not. */
  readonly pauseMs: number
  /** The latest that the budget's clock can show by the replica's own; null: it does not know. */
  readonly atMostMs: number | null
}

/** What all replicas together may do. */
export interface SharedLimits {
  /** The even pace: the microseconds between two calls. */
  readonly intervalUs: number
  /** How far calls may run ahead of the even pace. */
  readonly headStartUs: number
  readonly callsPerDay: number
  readonly concurrency: number
  /** A place whose replica does not end it lapses after this time. */
  readonly placeMs: number
}

/** Why no more places were granted. `apps`: apps of other replicas go first. */
export type BudgetHold = 'spent' | 'paused' | 'busy' | 'wait' | 'apps'

export interface BudgetAnswer {
  readonly granted: number
  /** Null: as many were granted as were wanted. */
  readonly hold: BudgetHold | null
  /** How long that lasts; where another replica decides, when to ask again. */
  readonly retryMs: number
  /** How long until rate and pause allow another call. */
  readonly nextMs: number
  /** The budget's clock: it never goes back, and agrees with no other. */
  readonly atMs: number
  readonly callsToday: number
  readonly dayLeftMs: number
}

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
  /** The credentials are refused, and may be tried again after so long; null: they are not refused. */
  readonly refusedForMs: number | null
  readonly mark: CredentialRefusal['mark']
  /** How long no token may be requested for another reason. */
  readonly pausedForMs: number
}

/** How a flight ended, for those who waited for it. */
export interface FlightEnd {
  readonly kind: 'recorded' | 'not_found' | 'unavailable' | 'unusable' | 'failed'
  readonly retryAfterMs: number | null
}

import type { BudgetAnswer, BudgetLimits, BudgetRequest } from '../../domain/polling/call-budget.ts'
import type { FlightEnd, TokenRecord, TokenState } from '../../domain/polling/carrier-answer.ts'

/** The flights of all replicas. A flight is one call to the carrier, for all replicas that ask the same question at that time. */
export interface SharedFlights {
  /**
   * Takes the flight for `leaseMs`. `taken`: the caller holds it and asks the carrier. `held`: another caller holds it; call again later,
   * with `waited` true. `ended`: the flight is over, with this end. If `waited` is false, `ended` is returned only for a flight that ended with
   * `not_found` within the last `notFoundForMs`. A flight is forgotten some seconds after its end, even if `notFoundForMs` is longer.
   */
  take(request: {
    readonly key: string
    readonly leaseMs: number
    readonly waited: boolean
    readonly notFoundForMs: number
  }): Promise<
    | { readonly kind: 'taken'; readonly holder: string }
    | { readonly kind: 'held' }
    | ({ readonly kind: 'ended' } & { readonly end: FlightEnd })
  >
  /** Whether a replica holds the flight. */
  isUnderWay(key: string): Promise<boolean>
  /** Extends the lease of a flight that the caller holds. */
  renew(request: { readonly key: string; readonly holder: string; readonly leaseMs: number }): Promise<void>
  /** Ends the flight. Callers that wait get `end`. */
  end(request: { readonly key: string; readonly holder: string; readonly end: FlightEnd }): Promise<void>
}

/** Keeps the budget for calls to the carrier that replicas share. */
export interface BudgetStore {
  /** Applies `settleBudget` to the stored row. Rejects if the store fails. In that case it is unknown whether slots were granted. */
  settle(request: BudgetRequest, limits: BudgetLimits): Promise<BudgetAnswer>
}

/** The carrier's token, which all replicas share. Rejects if the store fails. */
export interface SharedToken {
  /** Reads the token, its version, and how the attempts to get a new one have ended. */
  read(): Promise<TokenRecord>
  /** Takes or renews the right to replace the token of this version. False: another replica has that right, or has replaced the token. */
  claim(request: { readonly holder: string; readonly version: number; readonly leaseMs: number }): Promise<boolean>
  /** Ends a claim and saves a new token, or none if `sealed` is null. Returns the new version; null: the claim was lost, and nothing is saved. */
  replace(request: TokenState & { readonly holder: string; readonly sealed: string | null }): Promise<number | null>
  /** Ends a claim that brought no new token. The previous token stays. */
  giveUp(request: TokenState & { readonly holder: string }): Promise<void>
  /** Notes that the carrier has accepted a token. Earlier failed attempts no longer count. */
  accepted(version: number): Promise<void>
  /** Drops a token that the carrier has refused, unless it was replaced meanwhile. */
  refused(request: TokenState & { readonly version: number }): Promise<void>
}

/** The state of the carrier that the replicas of a relay share. */
export interface SharedCarrier {
  readonly budget: BudgetStore
  readonly token: SharedToken
}

/** Keeps lessons for the poller. A lesson is a text that contains what another replica has learnt about the carrier. */
export interface LessonTable {
  add(lesson: string): Promise<void>
  /** Removes the oldest lessons and returns them. Returns none if the replica was declared dead. */
  take(replicaId: number, limit: number): Promise<readonly string[]>
}

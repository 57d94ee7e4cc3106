import type { Audited } from '../../domain/admin/operator-action.ts'
import type { CadenceFacts, NextPoll } from '../../domain/polling/cadence.ts'
import type { BudgetAnswer, BudgetLimits, BudgetRequest } from '../../domain/polling/call-budget.ts'
import type { CarrierMemory } from '../../domain/polling/carrier-memory.ts'
import type { TokenRecord, TokenState } from '../../domain/polling/carrier-token.ts'
import type {
  DueCursor,
  DuePoll,
  ExpectedPush,
  LanguageAsked,
  MissedPush,
  PollCandidate,
  PollFailure,
  PushChannelView,
  PushHealthUpdate,
  WatchResult,
} from '../../domain/polling/poll.ts'

/** The verbs of polling that write; see `WriteSide`. Times are epoch milliseconds. */
export interface PollingWrites {
  /**
   * Leases due parcels: the most overdue, or if calls are scarce, the most valuable. Leaves out those in `underWay`, which are still being
   * polled. `probeSinceMs`: leases one due parcel at random, if possible one whose poll has not failed since this time.
   */
  claimDuePolls(request: {
    readonly nowMs: number
    readonly limit: number
    readonly leaseMs: number
    readonly underWay?: readonly number[]
    readonly probeSinceMs?: number | undefined
  }): Promise<readonly DuePoll[]>
  /** Leases the parcel of an identifier, whether or not its poll is due; null: there is no such parcel. */
  claimPoll(request: { readonly identifier: string; readonly nowMs: number; readonly leaseMs: number }): Promise<DuePoll | null>
  /** Saves that a poll failed, and schedules the next poll. */
  notePollFailure(failure: PollFailure): Promise<void>
  /** Remembers that the carrier answered 404 or 410 for an identifier of a known parcel (DOMAIN 6.3). */
  noteNotPollable(identifier: string): Promise<void>
  /** Notes that a language was fetched for a parcel. The language is fetched again only if a newer entry lacks it (DOMAIN 4.2). */
  noteLanguageAsked(request: LanguageAsked): Promise<void>
  /**
   * Watches an identifier: creates its parcel if there is none, and polls the parcel again if it was no longer polled. Null: the identifier
   * belongs to an erased parcel.
   */
  watch(request: Audited & { readonly identifier: string; readonly nowMs: number }): Promise<WatchResult | null>
  /**
   * Watches many identifiers in one transaction. Returns a result for each identifier, in their order; null: the identifier belongs to an
   * erased parcel. `isAtomic`: if one identifier belongs to an erased parcel, none is watched, and all results are null.
   */
  watchMany(
    request: Audited & { readonly identifiers: readonly string[]; readonly nowMs: number; readonly isAtomic?: boolean },
  ): Promise<readonly (WatchResult | null)[]>
  /** Stops polling the parcel of an identifier until a push comes or an app asks; null: there is no such parcel. Deletes nothing. */
  unwatch(request: Audited & { readonly identifier: string }): Promise<{ readonly parcelId: number } | null>
  /**
   * Moves the polls and deliveries of up to `limit` parcels with ids above `afterParcelId` back by `byMs`, because the wall clock was put
   * back that much. If a parcel was polled between `sinceMs` and `nowMs`, its next poll stays: it may have been planned by the new time.
   * Returns the last id that it looked at; null: there are no more.
   */
  shiftSchedule(request: {
    readonly byMs: number
    readonly sinceMs: number
    readonly nowMs: number
    readonly afterParcelId: number
    readonly limit: number
  }): Promise<number | null>
  /** Returns the facts that the last run saved about the carrier; null: it saved none. */
  carrierMemory(): Promise<CarrierMemory | null>
  /** Saves facts about the carrier for the next run. */
  rememberCarrier(memory: CarrierMemory): Promise<void>
  pushChannel(): Promise<PushChannelView>
  /** Returns when and why a parcel is polled next by the present model, or why it is not polled. */
  planPoll(facts: CadenceFacts): Promise<NextPoll>
  /** Saves what was learnt about the carrier, if that is due. Notifies operators when pushes become unreliable or are reliable again. */
  checkpointModel(): Promise<PushHealthUpdate>
  /** Decides, for polled entries whose grace period is over, whether their pushes were missed (DOMAIN 6.6). Returns the missed pushes. */
  settleMissedPushes(nowMs: number): Promise<readonly MissedPush[]>
}

/** The reads of polling; see `ReadSide`. */
export interface PollingReads {
  /**
   * An identifier each of some parcels whose last poll was answered, watched ones if possible. An answer about them shows that the carrier works.
   * `orEver`: if there are none, of parcels that were ever answered, because in an outage the polls of all of them may have failed.
   */
  answeredParcels(look?: { readonly orEver: boolean }): Promise<readonly string[]>
}

/** The store as polling uses it inside one transaction; see `WriteTx`. */
export interface PollingTx {
  /** The identifiers of a parcel that may be polled now, in the order in which to try them (DOMAIN 6.3). */
  pollableIdentifiers(parcelId: number, nowMs: number): Promise<readonly string[]>
  /** The times from which the carrier may be asked about these parcels, epoch milliseconds. Parcels without identifiers are left out. */
  pollableFrom(parcelIds: readonly number[]): Promise<ReadonlyMap<number, number>>
  /** Expected pushes whose grace period is over. */
  duePushes(nowMs: number, limit: number): Promise<readonly ExpectedPush[]>
  dropExpectedPushes(entries: readonly number[]): void
  /** Parcels whose poll is due and not leased, the most overdue first. `after`: the last parcel of the page before. */
  duePolls(request: { readonly nowMs: number; readonly limit: number; readonly after: DueCursor | null }): Promise<readonly DueCursor[]>
  /** Returns which of these parcels are due and not leased, in the given order, with everything that a poll needs. */
  pollCandidates(request: { readonly parcelIds: readonly number[]; readonly nowMs: number }): Promise<readonly PollCandidate[]>
  /** Leases polls: nobody else may claim them until `untilMs`. All leases end when the relay stops. */
  leasePolls(parcelIds: readonly number[], untilMs: number): void
  /** Ends the lease of a parcel, because its poll is over. */
  releasePoll(parcelId: number): void
  /**
   * The parcels of `shiftSchedule` whose polling may have ended only because the clock was ahead: those that are stale or delivered, and those
   * that are unknown since a poll in the future. Call it before `shiftSchedule`.
   */
  listEndedByClock(request: Parameters<PollingWrites['shiftSchedule']>[0]): Promise<readonly number[]>
  /** See `PollingWrites`. */
  shiftSchedule(request: Parameters<PollingWrites['shiftSchedule']>[0]): Promise<number | null>
  /** Saves that the carrier does not know an identifier. */
  markNotPollable(identifier: string, nowMs: number): Promise<void>
  /** Saves the sequence up to which a language was fetched, unless a higher sequence is already saved. */
  markLanguageAsked(parcelId: number, language: string, sequence: number): Promise<void>
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

/** Encrypts and decrypts texts that the store keeps. Each text is bound to a purpose. */
export interface TokenVault {
  seal(text: string, purpose: string): Promise<string>
  /** Returns the text; null: it was sealed for another purpose, or the key is lost. */
  open(sealed: string, purpose: string): Promise<string | null>
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

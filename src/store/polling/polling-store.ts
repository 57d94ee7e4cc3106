import type { DueCursor, PollCandidate } from '../../domain/polling/poll.ts'

/** The reads of polling; see `ReadSide`. */
export interface PollingReads {
  /**
   * An identifier each of some parcels whose last poll was answered, watched ones if possible. An answer about them shows that the carrier works.
   * `orEver`: if there are none, of parcels that were ever answered, because in an outage the polls of all of them may have failed.
   */
  answeredParcels(look?: { readonly orEver: boolean }): Promise<readonly string[]>
}

/** See `PollingWrites.shiftSchedule`. */
export interface ScheduleShift {
  readonly byMs: number
  readonly sinceMs: number
  readonly nowMs: number
  readonly afterParcelId: number
  readonly limit: number
}

/** The store as polling uses it inside one transaction; see `WriteTx`. */
export interface PollingTx {
  /** Parcels whose poll is due and not leased, the most overdue first. `after`: the last parcel of the page before. */
  duePolls(request: { readonly nowMs: number; readonly limit: number; readonly after: DueCursor | null }): Promise<readonly DueCursor[]>
  /** Returns which of these parcels are due and not leased, in the given order, with everything that a poll needs. */
  pollCandidates(request: { readonly parcelIds: readonly number[]; readonly nowMs: number }): Promise<readonly PollCandidate[]>
  /** Leases polls: nobody else may claim them until `untilMs`. All leases end when the relay stops. */
  leasePolls(parcelIds: readonly number[], untilMs: number): void
  /** Ends the lease of a parcel, because its poll is over. */
  releasePoll(parcelId: number): void
  /** See `PollingWrites` in `flow/polling/ports.ts`. */
  shiftSchedule(request: ScheduleShift): Promise<number | null>
  /** Saves the sequence up to which a language was fetched, unless a higher sequence is already saved. */
  markLanguageAsked(parcelId: number, language: string, sequence: number): Promise<void>
}

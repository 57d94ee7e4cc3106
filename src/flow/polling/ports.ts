import type { CarrierMemory } from '../../domain/polling/carrier-memory.ts'
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

/** The verbs of polling that write; see `WriteSide`. */
export interface PollingWrites {
  /** Leases the most overdue watched parcels; those that are still being asked about are passed over. */
  claimDuePolls(request: {
    readonly nowMs: number
    readonly limit: number
    readonly leaseMs: number
    readonly asking?: readonly number[]
  }): Promise<readonly DuePoll[]>
  /** Leases the parcel of an identifier, due or not; null: there is none. */
  claimPoll(request: { readonly identifier: string; readonly nowMs: number; readonly leaseMs: number }): Promise<DuePoll | null>
  notePollFailure(failure: PollFailure): Promise<void>
  /** Remembers that the carrier answered 404 or 410 for an identifier of a known parcel (DOMAIN 6.3). */
  noteNotPollable(identifier: string): Promise<void>
  /** Remembers that a language was fetched for a parcel: asked again only when a newer entry lacks it (DOMAIN 4.2). */
  noteLanguageAsked(request: LanguageAsked): Promise<void>
  /** Watches an identifier, creating its parcel if it is unknown; also revives a stopped one. */
  watch(request: { readonly identifier: string; readonly nowMs: number }): Promise<WatchResult>
  /** The same for many identifiers in one transaction; one result each, in their order. */
  watchMany(request: { readonly identifiers: readonly string[]; readonly nowMs: number }): Promise<readonly WatchResult[]>
  /** Polls for the parcel of an identifier no more, until a push or an app's question revives it; null: there is none. Deletes nothing. */
  unwatch(request: { readonly identifier: string }): Promise<{ readonly parcelId: number } | null>
  /**
   * Moves the checks and deliveries of at most `limit` parcels with ids above `afterParcelId` back by what the wall clock was put back by. Returns the last
   * id it looked at; null: there are no more.
   */
  shiftSchedule(request: {
    readonly byMs: number
    readonly nowMs: number
    readonly afterParcelId: number
    readonly limit: number
  }): Promise<number | null>
  /** What the last run left about its dealings with the carrier; null: nothing. */
  carrierMemory(): Promise<CarrierMemory | null>
  rememberCarrier(memory: CarrierMemory): Promise<void>
  /** What is known of the push channel (see `domain/polling/push-health`). */
  pushChannel(): Promise<PushChannelView>
  /** Writes down what was learnt of the carrier's rhythm and pushes, when it is time to, and tells operators when pushes fall silent. */
  checkpointModel(): Promise<PushHealthUpdate>
  /** Decides which polled entries whose grace has passed were missed pushes (DOMAIN 6.6). */
  settleMissedPushes(nowMs: number): Promise<readonly MissedPush[]>
}

/** What polling needs of the store inside one transaction; see `WriteTx`. */
export interface PollingTx {
  /** Those that may be asked for at this time, in the order to try them (DOMAIN 6.3). */
  pollableIdentifiers(parcelId: number, nowMs: number): Promise<readonly string[]>
  duePushes(nowMs: number, limit: number): Promise<readonly ExpectedPush[]>
  settlePush(entry: number): Promise<void>
  /** Parcels whose check is due and that nobody leased, the most overdue first, from a place in that order on. */
  duePolls(request: { readonly nowMs: number; readonly limit: number; readonly after: DueCursor | null }): Promise<readonly DueCursor[]>
  /** What there is to know before asking, of those among the parcels that are due and that nobody leased; in the order given. */
  pollCandidates(request: { readonly parcelIds: readonly number[]; readonly nowMs: number }): Promise<readonly PollCandidate[]>
  /** Until then they are not due for anybody else. A lease is for the run that takes it: one that is killed leaves none. */
  leasePolls(parcelIds: readonly number[], untilMs: number): void
  /** Ends the lease: the poll is over. */
  releasePoll(parcelId: number): void
  /** See the verb of the same name. */
  shiftSchedule(request: Parameters<PollingWrites['shiftSchedule']>[0]): Promise<number | null>
  markNotPollable(identifier: string, nowMs: number): Promise<void>
  /** Up to which sequence; what was marked further stays so. */
  markLanguageAsked(parcelId: number, language: string, sequence: number): Promise<void>
}

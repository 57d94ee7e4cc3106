import type { ErasureWrites } from '../../upkeep/erasure/erasure-ports.ts'
import type { Audited } from '../domain/admin/operator-action.ts'
import type { BatchReport, Reprocessed } from '../domain/history/recording.ts'
import type { DismissedHeld, HeldRange, HeldSelection } from '../domain/ingest/inbox.ts'
import type { Refusal, StoredRefused } from '../domain/ingest/refused-pushes.ts'
import type { CadenceFacts, NextPoll } from '../domain/polling/cadence.ts'
import type { CarrierMemory } from '../domain/polling/carrier-memory.ts'
import type {
  DuePoll,
  LanguageAsked,
  MissedPush,
  PollFailure,
  PushChannelView,
  PushHealthUpdate,
  WatchResult,
} from '../domain/polling/poll.ts'
import type { ScheduleShift } from '../store/polling/schedule-shift.ts'
import type { AdminWrites } from './admin/ports.ts'
import type { DeliveryWrites } from './delivery/ports.ts'
import type { HistoryWrites } from './history/ports.ts'

/** Everything that writes to the store. Arguments and results are plain data, so that the verbs can run on this thread or another. */
export interface WriteSide extends HistoryWrites, PollingWrites, AdminWrites, DeliveryWrites, IngestWrites, ErasureWrites {
  close(): Promise<void>
}

/** The verbs of ingest that write; see `WriteSide`. */
interface IngestWrites {
  /**
   * Reprocesses a quarantined or expired push of the inbox as if it had arrived now. If it still cannot be recorded, it stays in the inbox
   * with the new reason.
   */
  reprocess(request: Audited & { readonly inboxId: number; readonly nowMs: number }): Promise<Reprocessed>
  /** Reprocesses up to `limit` selected pushes in the same way, the oldest first, with inbox ids above `after` and up to `upTo`. */
  reprocessHeld(request: ReprocessRequest): Promise<ReprocessedBatch>
  /**
   * Dismisses a quarantined push, which stays unrecorded unless it is reprocessed. `done`: the push is dismissed. `settled`: it was not in
   * quarantine. `unknown`: there is no such push.
   */
  dismissPush(request: Audited & { readonly inboxId: number }): Promise<'done' | 'settled' | 'unknown'>
  /** Dismisses up to `limit` quarantined pushes of a reason, the oldest first, with inbox ids above `after` and up to `upTo`. */
  dismissHeld(request: Audited & Pick<HeldSelection, 'reason'> & HeldRange): Promise<DismissedHeld>
  /** Stores an explained refusal, and deletes the oldest refusals beyond `REFUSALS_KEPT`. */
  keepRefusal(refusal: Refusal): Promise<void>
  /** Saves spells (see `RefusedPushes`), replacing earlier states of the same spells, and deletes spells that ended long ago. */
  saveRefused(request: { readonly spells: readonly StoredRefused[]; readonly nowMs: number }): Promise<void>
}

interface ReprocessRequest extends Audited, HeldRange {
  readonly selection: HeldSelection
  readonly nowMs: number
}

interface ReprocessedBatch {
  readonly report: BatchReport
  /** The inbox id of the last push of this batch; null: there are no more. */
  readonly next: number | null
}

/** The verbs of polling that write; see `WriteSide`. Times are epoch milliseconds. */
interface PollingWrites {
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
  shiftSchedule(request: ScheduleShift): Promise<number | null>
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

import type { Audited } from '../../domain/admin/operator-action.ts'
import type { NewestPush } from '../../domain/admin/problems/trouble.ts'
import type { BatchReport, Reprocessed } from '../../domain/history/recording.ts'
import type {
  DismissedHeld,
  HeldGroup,
  HeldPage,
  HeldPush,
  HeldRange,
  HeldSelection,
  InboxPage,
  InboxQuery,
  InspectedPush,
} from '../../domain/ingest/inbox.ts'
import type { KeptRefusal, Refusal } from '../../domain/ingest/refusal.ts'
import type { StoredRefused } from '../../domain/ingest/refused-pushes.ts'

/** The verbs of ingest that write; see `WriteSide`. */
export interface IngestWrites {
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

export interface ReprocessRequest extends Audited, HeldRange {
  readonly selection: HeldSelection
  readonly nowMs: number
}

export interface ReprocessedBatch {
  readonly report: BatchReport
  /** The inbox id of the last push of this batch; null: there are no more. */
  readonly next: number | null
}

/** The store as ingest uses it inside one transaction; see `WriteTx`. */
export interface IngestTx {
  /** A push of the inbox with its bytes; null: no push has this id. */
  findPush(inboxId: number): Promise<HeldPush | null>
  /** Pushes that were not recorded, the oldest first. */
  listHeld(request: HeldSelection & HeldRange): Promise<HeldPage>
  /** The newest pushes of the inbox, the newest first. */
  listNewestPushes(limit: number): Promise<readonly NewestPush[]>
  /** Dismisses a quarantined push; false: the push was not in quarantine. */
  dismissPush(inboxId: number): Promise<boolean>
  /** Dismisses quarantined pushes of a reason, the oldest first. Reason null: any. */
  dismissHeld(request: Pick<HeldSelection, 'reason'> & HeldRange): Promise<DismissedHeld>
  /** Adds a refusal, and deletes the oldest refusals beyond `REFUSALS_KEPT`. */
  addRefusal(refusal: Refusal): void
  /** The stored spells of refused pushes, of all processes, in any order. */
  listRefused(): Promise<readonly StoredRefused[]>
  /** Saves a spell, replacing an earlier state of the same spell. */
  saveRefused(spell: StoredRefused): void
  removeRefused(spell: StoredRefused): void
}

/** The reads of ingest; see `ReadSide`. */
export interface IngestReads {
  /** A page of the inbox, the newest first. */
  listInbox(query: InboxQuery): Promise<InboxPage>
  /** A push of the inbox with its bytes; null: no push has this id. */
  inspectPush(inboxId: number): Promise<InspectedPush | null>
  /** Counts the pushes that were not recorded, by reason. The reason with the newest push comes first. */
  countHeld(state: HeldSelection['state']): Promise<readonly HeldGroup[]>
  /** Explained refusals, the newest first, with ids below `before`; null: from the newest. */
  listRefusals(query: { readonly before: number | null; readonly limit: number }): Promise<readonly KeptRefusal[]>
  /** The stored spells of refused pushes, of all processes, in any order. */
  listRefused(): Promise<readonly StoredRefused[]>
}

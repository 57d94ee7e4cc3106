import type { Audited } from '../../domain/admin/operator-action.ts'
import type { BatchReport, Reprocessed } from '../../domain/history/recording.ts'
import type { DismissedHeld, HeldRange, HeldSelection } from '../../domain/ingest/inbox.ts'
import type { Refusal, StoredRefused } from '../../domain/ingest/refused-pushes.ts'

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

import type { Audited } from '../../domain/admin/operator-action.ts'
import type { Reprocessed } from '../../domain/history/recording.ts'
import type { InboxPage, InboxQuery, InspectedPush } from '../../domain/ingest/inbox.ts'

/** The verbs of ingest that write; see `WriteSide`. */
export interface IngestWrites {
  /**
   * Reprocesses a quarantined or expired push of the inbox as if it arrived now. If it still cannot be recorded it stays there, with the
   * new reason.
   */
  reprocess(request: Audited & { readonly inboxId: number; readonly nowMs: number }): Promise<Reprocessed>
}

/** What ingest needs of the store inside one transaction; see `WriteTx`. */
export interface IngestTx {
  /** A push of the inbox with its bytes; null: there is none. */
  findPush(inboxId: number): Promise<InspectedPush | null>
}

/** What ingest reads from the store; see `ReadSide`. */
export interface IngestReads {
  /** A page of the inbox, the newest first. */
  listInbox(query: InboxQuery): Promise<InboxPage>
  /** A push of the inbox with its bytes; null: there is none. */
  findPush(inboxId: number): Promise<InspectedPush | null>
}

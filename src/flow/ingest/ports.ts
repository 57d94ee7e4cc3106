import type { Reprocessed } from '../../domain/history/recording.ts'
import type { InboxPage, InboxQuery, InspectedPush } from '../../domain/ingest/inbox.ts'

/** The verbs of ingest that write; see `WriteSide`. */
export interface IngestWrites {
  /** Records a quarantined or expired push from the inbox, as if it came now. What cannot be recorded stays there, with the reason of now. */
  reprocess(request: { readonly inboxId: number; readonly nowMs: number }): Promise<Reprocessed>
}

/** What ingest needs of the store inside one transaction; see `WriteTx`. */
export interface IngestTx {
  /** Null: there is none. */
  findPush(inboxId: number): Promise<InspectedPush | null>
}

/** What ingest reads of the store; see `ReadSide`. */
export interface IngestReads {
  listInbox(query: InboxQuery): Promise<InboxPage>
  /** With its bytes; null: there is none. */
  findPush(inboxId: number): Promise<InspectedPush | null>
}

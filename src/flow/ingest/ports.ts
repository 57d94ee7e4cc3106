import type { Reprocessed } from '../../domain/history/recording.ts'
import type { InboxEntry, InboxPage, InboxQuery, InspectedPush, KeptPush } from '../../domain/ingest/inbox.ts'

/** The verbs of ingest that write; see `WriteSide`. */
export interface IngestWrites {
  /** Records a quarantined or expired push from the inbox, as if it came now. What cannot be recorded stays there, with the reason of now. */
  reprocess(request: { readonly inboxId: number; readonly nowMs: number }): Promise<Reprocessed>
}

/** What ingest needs of the store inside one transaction; see `WriteTx`. */
export interface IngestTx {
  /** The number a push is kept under; null: it is a duplicate of one of its parcel's (of those not understood), and was only counted. */
  saveInbox(entry: InboxEntry): Promise<number | null>
  /** Takes back what was kept in this transaction. */
  deleteInbox(inboxId: number): Promise<void>
  /** Null: there is none. */
  findPush(inboxId: number): Promise<InspectedPush | null>
  /** Keeps a push that was not recorded otherwise than before; null: it is a duplicate after all, which has taken its place. */
  resettlePush(inboxId: number, entry: InboxEntry): Promise<number | null>
  /** Recorded pushes of a parcel whose bytes are kept, in the order of their digests, after one of them. */
  listPushes(request: { readonly parcelId: number; readonly after: Uint8Array; readonly limit: number }): Promise<readonly KeptPush[]>
}

/** What ingest reads of the store; see `ReadSide`. */
export interface IngestReads {
  listInbox(query: InboxQuery): Promise<InboxPage>
  /** With its bytes; null: there is none. */
  findPush(inboxId: number): Promise<InspectedPush | null>
}

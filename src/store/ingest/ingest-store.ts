import type { HeldGroup, HeldSelection, InboxPage, InboxQuery, InspectedPush } from '../../domain/ingest/inbox.ts'
import type { KeptRefusal } from '../../domain/ingest/refusal.ts'
import type { StoredRefused } from '../../domain/ingest/refused-pushes.ts'

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

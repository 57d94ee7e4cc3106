import type { NewestPush } from '../../domain/admin/problems/trouble.ts'
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

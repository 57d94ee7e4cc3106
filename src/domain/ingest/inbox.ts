import type { PushObservation, QuarantineReason } from '../history/observation.ts'
import type { BodyFault } from './fault-in-body.ts'

/** A push with a valid signature, as it arrived. The store keeps exactly the bytes of `body`. */
export interface ReceivedPush {
  readonly body: Uint8Array
  /** The `Content-Encoding` header; null: there is none. An encoded body is stored and quarantined, never decompressed. */
  readonly contentEncoding: string | null
  readonly receivedAtMs: number
  /** The index of the configured key that has signed it. */
  readonly keyIndex: number
}

export type ParsedEvent =
  | { readonly ok: true; readonly observation: PushObservation }
  | { readonly ok: false; readonly reason: QuarantineReason }

/** A push on its way to be recorded. */
export interface IncomingPush extends ReceivedPush {
  readonly kind: 'push'
  /** The event in its body, or why there is none. */
  readonly reading: ParsedEvent
  /** Its inbox id. Only a push that is being reprocessed has one. */
  readonly inboxId?: number
}

/** A push in the inbox and its outcome, as operators see it. */
export interface InboxPush {
  readonly inboxId: number
  readonly state: InboxState
  /** Why it is in quarantine, or was; null: it never was. */
  readonly reason: string | null
  readonly receivedAtMs: number
  readonly keyIndex: number
  readonly contentEncoding: string | null
  /** How often the same push came again. */
  readonly duplicates: number
  /** The size of its body; null: the bytes are no longer kept. */
  readonly bodyBytes: number | null
  /** The identifiers of its parcel, tracking numbers first. If the push was not recorded: the identifiers that its body names. */
  readonly identifiers: readonly string[]
  /** The status of its event; null: its body has none, or is too long for a list. */
  readonly status: string | null
  /** The position of the error in its body; null: it is not known, or the body is too long for a list. */
  readonly fault: BodyFault | null
}

/**
 * The state of a push. `dismissed`: an operator has decided that a quarantined push stays unrecorded. It can still be reprocessed, which
 * reopens it.
 */
export type InboxState = InboxEntry['state'] | 'dismissed'

/** Selects a page of the inbox. */
export interface InboxQuery {
  /** Null: any. */
  readonly state: InboxState | null
  /** Only pushes that are or were in quarantine for this reason; null or absent: any push. */
  readonly reason?: string | null
  /** An identifier of the parcel; null or absent: any. A push that was not recorded is found if its body names the parcel. */
  readonly parcel?: string | null
  /** Only pushes received at this time or later; null or absent: at any time. */
  readonly fromMs?: number | null
  /** Only pushes received before this time; null or absent: at any time. */
  readonly toMs?: number | null
  /** Only pushes with ids below this; null: from the newest. */
  readonly before: number | null
  readonly limit: number
}

/** A page of the inbox. */
export interface InboxPage {
  /** The newest first. While there is a `next`, a page may hold fewer than asked for, even none. */
  readonly pushes: readonly InboxPush[]
  readonly next: number | null
}

/** A push with its bytes. */
export interface InspectedPush extends InboxPush {
  readonly body: Uint8Array | null
}

/** A push that is to be reprocessed. */
export interface HeldPush extends Pick<InboxPush, 'state' | 'receivedAtMs' | 'keyIndex' | 'contentEncoding'> {
  /** Null: the bytes are no longer kept. */
  readonly body: Uint8Array | null
}

/** Selects pushes that were not recorded. */
export interface HeldSelection {
  readonly state: 'quarantined' | 'expired'
  /** Null: any. */
  readonly reason: string | null
}

/** Selects pushes by their inbox ids: above `after` and up to `upTo`, at most `limit`. */
export interface HeldRange {
  readonly after: number
  readonly upTo: number
  readonly limit: number
}

/** Selected pushes with their bytes. Bodies may be long, so a page may hold fewer than asked for. */
export interface HeldPage {
  readonly pushes: readonly (HeldPush & { readonly inboxId: number })[]
  /** The id of the last push of this page; null: there are no more. */
  readonly next: number | null
}

/** A batch of quarantined pushes was dismissed. */
export interface DismissedHeld {
  readonly count: number
  /** The id of the last push of the batch; null: there are no more. */
  readonly next: number | null
}

/** Pushes that were not recorded for the same reason. */
export interface HeldGroup {
  /** Null: they are expired. */
  readonly reason: string | null
  readonly count: number
  readonly first: HeldEnd
  readonly last: HeldEnd
}

/** The oldest or the newest of a group. */
export interface HeldEnd {
  readonly inboxId: number
  readonly receivedAtMs: number
}

/** A push as it is stored: its bytes and its outcome. */
export interface InboxEntry {
  readonly push: IncomingPush
  readonly state: 'recorded' | 'quarantined' | 'expired'
  readonly reason: QuarantineReason | null
  readonly parcelId: number | null
}

/** The part of a stored push that shows whether another push is its duplicate. */
export interface KeptPush {
  readonly inboxId: number
  readonly digest: Uint8Array
  readonly body: Uint8Array
}

import type { PushObservation, QuarantineReason } from '../history/observation.ts'
import type { BodyFault } from './fault-in-body.ts'

/** A push with a valid signature, as it arrived. Exactly the bytes of `body` are stored. */
export interface ReceivedPush {
  readonly body: Uint8Array
  /** The `Content-Encoding` header, if any. An encoded body is stored and quarantined, never decompressed. */
  readonly contentEncoding: string | null
  readonly receivedAtMs: number
  /** The index of the configured key that matched. */
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
  /** Its inbox id, if it is stored already and is being reprocessed. */
  readonly inboxId?: number
}

/** A push in the inbox and its outcome, as operators see it. */
export interface InboxPush {
  readonly inboxId: number
  readonly state: InboxState
  /** Why it is, or was, quarantined; null: it never was. */
  readonly reason: string | null
  readonly receivedAtMs: number
  readonly keyIndex: number
  readonly contentEncoding: string | null
  /** How often it arrived again. */
  readonly duplicates: number
  /** Null: the bytes are no longer kept. */
  readonly bodyBytes: number | null
  /** The identifiers of its parcel, tracking numbers first. A push that was not recorded has the ones that its body names. */
  readonly identifiers: readonly string[]
  /** The status of its event; null: its body has none, or is too long to be read for a list. */
  readonly status: string | null
  /** The position of the error in its body; null: it is not known, or its body is too long to be read for a list. */
  readonly fault: BodyFault | null
}

/**
 * The state of a push. `dismissed`: it was quarantined, and an operator decided that it stays unrecorded. It can still be reprocessed,
 * which reopens it.
 */
export type InboxState = InboxEntry['state'] | 'dismissed'

/** Selects a page of the inbox. */
export interface InboxQuery {
  /** Null: any. */
  readonly state: InboxState | null
  /** Only pushes that are, or were, quarantined for this reason; null or absent: any. */
  readonly reason?: string | null
  /** An identifier of the parcel; null or absent: any. A push that was not recorded counts if its body names the parcel. */
  readonly parcel?: string | null
  /** Received at this time or later; null or absent: at any time. Pushes are found by the order in which they came. */
  readonly fromMs?: number | null
  /** Received before then. */
  readonly toMs?: number | null
  /** Pushes with ids below this; null: from the newest. */
  readonly before: number | null
  readonly limit: number
}

/** A page of the inbox. */
export interface InboxPage {
  /** The newest first. A page may hold fewer than asked for, even none, while there is a `next`. */
  readonly pushes: readonly InboxPush[]
  readonly next: number | null
}

/** A push with its bytes; null: they are no longer kept. */
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

/** Selects pushes by their inbox ids: after `after` and up to `upTo`, at most `limit`. */
export interface HeldRange {
  readonly after: number
  readonly upTo: number
  readonly limit: number
}

/** Selected pushes with their bytes. They may be fewer than asked for, because bodies may be long. */
export interface HeldPage {
  readonly pushes: readonly (HeldPush & { readonly inboxId: number })[]
  /** The id of the last one; null: there are no more. */
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

/** A stored push, as far as finding duplicates needs it. */
export interface KeptPush {
  readonly inboxId: number
  readonly digest: Uint8Array
  readonly body: Uint8Array
}

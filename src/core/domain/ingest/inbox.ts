import type { PushObservation, QuarantineReason } from '../history/observation.ts'
import type { BodyFault } from './fault-in-body.ts'

/** A push with a valid signature, as it arrived. The exact bytes of `body` are stored. */
export interface ReceivedPush {
  readonly body: Uint8Array
  /** The `Content-Encoding` header; null: there is none. An encoded body is stored and quarantined, never decompressed. */
  readonly contentEncoding: string | null
  readonly receivedAtMs: number
  /** The index, in the config, of the key that the signature matches. */
  readonly keyIndex: number
}

export type ParsedEvent =
  | { readonly ok: true; readonly observation: PushObservation }
  | { readonly ok: false; readonly reason: QuarantineReason }

/** A push that is to be recorded. */
export interface IncomingPush extends ReceivedPush {
  readonly kind: 'push'
  /** The event in the body, or the reason why the body is not a valid event. */
  readonly reading: ParsedEvent
  /** The push's inbox id. Absent: the push is not stored yet. */
  readonly inboxId?: number
}

/** A push in the inbox and its outcome, as operators see it. */
export interface InboxPush {
  readonly inboxId: number
  readonly state: InboxState
  /** Why the push is or was in quarantine; null: it never was. */
  readonly reason: string | null
  readonly receivedAtMs: number
  readonly keyIndex: number
  readonly contentEncoding: string | null
  /** How many times the same push came again. */
  readonly duplicates: number
  /** The size of the body; null: the bytes were deleted. */
  readonly bodyBytes: number | null
  /** The identifiers of the push's parcel, tracking numbers first. If the push was not recorded, the identifiers that its body names. */
  readonly identifiers: readonly string[]
  /** The status in the body; null: the body has no status, or is too long to be read for a list. */
  readonly status: string | null
  /** When the event in the body happened, epoch milliseconds; null: as with `status`. */
  readonly eventAtMs: number | null
  /** The position of the error in the body; null: the position is not known, or the body is too long to be read for a list. */
  readonly fault: BodyFault | null
}

/** The state of a push. `dismissed`: an operator decided not to record a quarantined push. An operator can still have it processed again. */
export type InboxState = InboxEntry['state'] | 'dismissed'

export interface InboxQuery {
  /** Null: pushes in any state. */
  readonly state: InboxState | null
  /** Only pushes that are or were in quarantine for this reason; null or absent: any push. */
  readonly reason?: string | null
  /** Only pushes about the parcel with this identifier; null or absent: any. An unrecorded push is found if its body names the parcel. */
  readonly parcel?: string | null
  /** Only pushes received at this time or later; null or absent: at any time. */
  readonly fromMs?: number | null
  /** Only pushes received before this time; null or absent: at any time. */
  readonly toMs?: number | null
  /** Only pushes with ids below this one; null: begin with the newest push. */
  readonly before: number | null
  readonly limit: number
}

export interface InboxPage {
  /** The newest push comes first. A page with a `next` may have fewer pushes than `limit`, or none. */
  readonly pushes: readonly InboxPush[]
  readonly next: number | null
}

export interface InspectedPush extends InboxPush {
  readonly body: Uint8Array | null
}

/** A stored push that is to be processed again. */
export interface HeldPush extends Pick<InboxPush, 'state' | 'receivedAtMs' | 'keyIndex' | 'contentEncoding'> {
  /** Null: the bytes are no longer kept. */
  readonly body: Uint8Array | null
}

/** Selects pushes that were not recorded. */
export interface HeldSelection {
  readonly state: 'quarantined' | 'expired'
  /** Only pushes with this reason; null: any reason. */
  readonly reason: string | null
}

/** Selects at most `limit` pushes with inbox ids above `after` and up to `upTo`. */
export interface HeldRange {
  readonly after: number
  readonly upTo: number
  readonly limit: number
}

/** A page of selected pushes with their bytes. It may have fewer pushes than `limit`, because bodies may be long. */
export interface HeldPage {
  readonly pushes: readonly (HeldPush & { readonly inboxId: number })[]
  /** The id of the last push of this page, to continue after it; null: this is the last page. */
  readonly next: number | null
}

export interface DismissedHeld {
  readonly count: number
  /** The id of the last push of the batch, to continue after it; null: this was the last batch. */
  readonly next: number | null
}

/** Pushes that were not recorded for the same reason. */
export interface HeldGroup {
  /** Why the pushes are in quarantine; null: they are `expired`, not in quarantine. */
  readonly reason: string | null
  readonly count: number
  readonly first: HeldEnd
  readonly last: HeldEnd
}

/** The oldest or the newest push of a group. */
export interface HeldEnd {
  readonly inboxId: number
  readonly receivedAtMs: number
}

export interface InboxEntry {
  readonly push: IncomingPush
  readonly state: 'recorded' | 'quarantined' | 'expired'
  readonly reason: QuarantineReason | null
  readonly parcelId: number | null
}

/** The part of a stored push by which duplicates are found. */
export interface KeptPush {
  readonly inboxId: number
  readonly digest: Uint8Array
  readonly body: Uint8Array
}

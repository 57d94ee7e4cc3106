import type { PushObservation, QuarantineReason } from '../history/observation.ts'

/** A push whose signature is right, as it arrived: what is stored is exactly `body`. */
export interface ReceivedPush {
  readonly body: Uint8Array
  /** The `Content-Encoding` header, if any: such a body is stored and quarantined, never inflated. */
  readonly contentEncoding: string | null
  readonly receivedAtMs: number
  /** Which of the configured keys matched, counted from 0. */
  readonly keyIndex: number
}

export type ParsedEvent =
  | { readonly ok: true; readonly observation: PushObservation }
  | { readonly ok: false; readonly reason: QuarantineReason }

export interface IncomingPush extends ReceivedPush {
  readonly kind: 'push'
  /** What the body says, or why it says nothing. */
  readonly reading: ParsedEvent
  /** The number it is kept under already, when a push from the inbox is recorded again. */
  readonly inboxId?: number
}

/** A push that is in the inbox, and what became of it. */
export interface InboxPush {
  readonly inboxId: number
  readonly state: InboxEntry['state']
  /** Why it is quarantined. */
  readonly reason: string | null
  readonly receivedAtMs: number
  readonly keyIndex: number
  readonly contentEncoding: string | null
  /** How often it came again. */
  readonly duplicates: number
  /** Null: they are no longer kept. */
  readonly bodyBytes: number | null
}

export interface InboxQuery {
  /** Null: any. */
  readonly state: InboxEntry['state'] | null
  /** Pushes with ids below this; null: from the newest. */
  readonly before: number | null
  readonly limit: number
}

export interface InboxPage {
  /** The newest first; perhaps fewer than asked for, even none, while there is a `next`. */
  readonly pushes: readonly InboxPush[]
  readonly next: number | null
}

export interface InspectedPush extends InboxPush {
  readonly body: Uint8Array | null
}

/** A push as it is kept: the bytes, and what became of it. */
export interface InboxEntry {
  readonly push: IncomingPush
  readonly state: 'recorded' | 'quarantined' | 'expired'
  readonly reason: QuarantineReason | null
  readonly parcelId: number | null
}

export interface KeptPush {
  readonly inboxId: number
  readonly digest: Uint8Array
  readonly body: Uint8Array
}

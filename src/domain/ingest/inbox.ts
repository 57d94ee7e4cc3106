import type { PushObservation, QuarantineReason } from '../history/observation.ts'

/** A push with a valid signature, as it arrived. Exactly the bytes of `body` are stored. */
export interface ReceivedPush {
  readonly body: Uint8Array
  /** The `Content-Encoding` header, if any. An encoded body is stored and quarantined, never decompressed. */
  readonly contentEncoding: string | null
  readonly receivedAtMs: number
  /** The index of the configured key that matched. */
  readonly keyIndex: number
}

/** A parsed event, or the reason why the push is quarantined. */
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
  readonly state: InboxEntry['state']
  /** Why it is quarantined; null: it is not. */
  readonly reason: string | null
  readonly receivedAtMs: number
  readonly keyIndex: number
  readonly contentEncoding: string | null
  /** How often it arrived again. */
  readonly duplicates: number
  /** Null: the bytes are no longer kept. */
  readonly bodyBytes: number | null
}

/** Selects a page of the inbox. */
export interface InboxQuery {
  /** Null: any. */
  readonly state: InboxEntry['state'] | null
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

/** A push as it is stored: its bytes and its outcome. */
export interface InboxEntry {
  readonly push: IncomingPush
  readonly state: 'recorded' | 'quarantined' | 'expired'
  readonly reason: QuarantineReason | null
  readonly parcelId: number | null
}

/** A stored push as duplicates are compared with it. */
export interface KeptPush {
  readonly inboxId: number
  readonly digest: Uint8Array
  readonly body: Uint8Array
}

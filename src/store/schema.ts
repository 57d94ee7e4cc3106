import type { Generated } from 'kysely'

/**
 * The tables. Times are epoch milliseconds (`_at_ms`), flags 0 or 1. What repeats across parcels (the words of a sighting) is stored once,
 * in `content`.
 */
export interface Tables {
  /** What the relay must remember about itself: its token key, the sequence. */
  readonly setting: { readonly name: string; readonly value: Uint8Array }
  readonly parcel: ParcelTable
  /** The last number given in each table that counts its rows' numbers; kept by the database itself. */
  readonly sqlite_sequence: { readonly name: string; readonly seq: number }
  /** On PostgreSQL: the last number given to anything, where those of the last batch begin, and how often endpoints have changed. */
  readonly counter: { readonly name: string; readonly value: number; readonly base: number; readonly version: number }
  /** Every status that was the latest of any parcel. */
  readonly parcel_status: { readonly status: string }
  readonly identifier: IdentifierTable
  readonly content: { readonly id: Generated<number>; readonly digest: Uint8Array; readonly json: string }
  readonly sighting: SightingTable
  readonly answer: AnswerTable
  readonly inbox: InboxTable
  readonly feed: FeedTable
  readonly expected_push: ExpectedPushTable
  readonly endpoint: EndpointTable
  /** Events that no push brought, in the bytes they were first queued with. */
  readonly composed_event: { readonly sequence: number; readonly body: Uint8Array }
  readonly delivery: DeliveryTable
  readonly attempt: AttemptTable
  readonly job: JobTable
  readonly language_asked: { readonly parcel_id: number; readonly language: string; readonly sequence: number }
  readonly audit: {
    readonly sequence: number
    readonly at_ms: number
    readonly kind: string
    readonly parcel_id: number
    readonly detail: string
  }
}

interface ParcelTable {
  readonly id: Generated<number>
  readonly watched_at_ms: number | null
  readonly first_pushed_at_ms: number | null
  readonly revived_at_ms: number
  readonly entry_count: number
  readonly latest_status: string | null
  readonly latest_at_ms: number | null
  readonly heard_at_ms: number | null
  readonly checked_at_ms: number | null
  readonly failures: number
  readonly next_poll_at_ms: number | null
  readonly stopped: string | null
  readonly is_full: number
}

interface IdentifierTable {
  readonly value: string
  readonly parcel_id: number
  /** Whether the carrier named it in `trackingIds`; if not, somebody asked for it by name. */
  readonly is_tracking_id: number
  /** When the carrier last said it does not know it; null: it never did. */
  readonly refused_at_ms: number | null
}

interface SightingTable {
  readonly parcel_id: number
  readonly at_ms: number
  /** Whether the timestamp was written with milliseconds. */
  readonly has_ms: number
  readonly content_id: number
  readonly listing: number
  readonly ordinal: number
  readonly asked_at_ms: number
  readonly sequence: number
  /** Whom it was told of: one of the codec's numbers. */
  readonly told: number
  /** JSON: its unknown members, as a list of name and JSON text; null: it has none. */
  readonly extra: string | null
}

interface AnswerTable {
  readonly parcel_id: number
  readonly language: string
  readonly digest: Uint8Array
  readonly asked_at_ms: number
  readonly entry_count: number
  readonly is_flawed: number
  /** Whether it decides the order at equal instants: at most one of a parcel's does. */
  readonly decides_order: number
  /** JSON: what it says of the parcel as a whole. */
  readonly head: string
  readonly body: Uint8Array | null
}

interface InboxTable {
  readonly id: Generated<number>
  /** Of the body: with the parcel it tells a push that was received before, after the body itself is gone. */
  readonly digest: Uint8Array
  readonly received_at_ms: number
  readonly key_index: number
  readonly content_encoding: string | null
  readonly state: number
  readonly reason: string | null
  /** 0: none. */
  readonly parcel_id: number
  readonly duplicates: Generated<number>
  readonly body: Uint8Array | null
}

interface FeedTable {
  readonly sequence: number
  readonly kind: number
  readonly parcel_id: number
  readonly entry: number
  /** What endpoints are sent for it: the number of a push, or one of the codec's for a composed event; null: nothing. */
  readonly carries: number | null
  /** Whom the entry was told of before, as in `sighting`: they are not sent it. */
  readonly told_before: Generated<number>
}

interface ExpectedPushTable {
  readonly entry: number
  readonly parcel_id: number
  readonly event_at_ms: number
  readonly found_at_ms: number
  readonly due_at_ms: number
}

interface EndpointTable {
  readonly id: Generated<number>
  readonly name: string
  readonly origin: string
  /** JSON: everything of an endpoint but its id, name and key. */
  readonly settings: string
  /** Why it is disabled; null: it is not. */
  readonly disabled: string | null
  readonly succeeded_at_ms: number | null
  readonly failing_since_ms: number | null
  readonly failed_for_ms: Generated<number>
  /** JSON: ids of the parcels whose attempts failed last. */
  readonly failed_parcels: Generated<string>
  /** Null: it is not failing. */
  readonly probe_at_ms: number | null
  readonly probes_failed: Generated<number>
  readonly round: Generated<number>
  readonly woken_at_ms: Generated<number>
  /** JSON: its keys, encrypted; null: the config file names its key. */
  readonly sealed_keys: string | null
  /** Up to which sequence the feed has been queued for it; null: all of it. */
  readonly queued_to: number | null
  /** From which sequence on it is given backfill, and from which on no longer; null: never, and still. */
  readonly backfill_from: number | null
  readonly backfill_to: number | null
  readonly removed_at_ms: number | null
}

interface DeliveryTable {
  readonly id: Generated<number>
  readonly endpoint_id: number
  readonly parcel_id: number
  readonly sequence: number
  readonly previous_sequence: number
  /** The push whose bytes it carries; null: a composed event's. */
  readonly inbox_id: number | null
  readonly state: number
  readonly reason: string | null
  readonly attempts: number
  /** Of these, those that were not on its schedule. */
  readonly spared: Generated<number>
  /** Its endpoint's when it was last attempted; 0: it was not since it was queued; below: an operator asked for it to be next. */
  readonly round: Generated<number>
  readonly queued_at_ms: number
  readonly first_failed_at_ms: number | null
  readonly next_attempt_at_ms: number
  readonly settled_at_ms: number | null
  /** The attempt that was accepted with an answer that said nothing more; null: it is in `attempt`, or there is none. */
  readonly accepted_at_ms: number | null
  readonly accepted_duration_ms: number | null
  readonly accepted_status: number | null
}

interface JobTable {
  readonly id: Generated<number>
  readonly kind: string
  /** JSON: what is to be done. */
  readonly task: string
  readonly started_by: string
  readonly state: string
  /** JSON: where it goes on; null: it has not begun. */
  readonly place: string | null
  readonly done: number
  readonly failure: string | null
  readonly created_at_ms: number
  readonly started_at_ms: number | null
  /** Null: it goes on. */
  readonly ended_at_ms: number | null
}

interface AttemptTable {
  readonly id: Generated<number>
  readonly delivery_id: number
  readonly at_ms: number
  readonly duration_ms: number
  readonly status: number | null
  readonly reason: string | null
  readonly answer: Uint8Array | null
}

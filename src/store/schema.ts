import type { Generated } from 'kysely'
import type { FilteredMember } from '../domain/delivery/event-values.ts'

/**
 * The tables. Times are epoch milliseconds (`_at_ms`), flags are 0 or 1. Texts that repeat across parcels (the content of a sighting) are
 * stored once, in `content`.
 */
export interface Tables {
  /** The relay's own state, such as its token key and the sequence. */
  readonly setting: { readonly name: string; readonly value: Uint8Array }
  readonly parcel: ParcelTable
  /** The last id assigned in each AUTOINCREMENT table. SQLite maintains it. */
  readonly sqlite_sequence: { readonly name: string; readonly seq: number }
  /** PostgreSQL only. `base`: the value before the last batch was recorded. `version`: rises when endpoints change. */
  readonly counter: { readonly name: string; readonly value: number; readonly base: number; readonly version: number }
  /** Every status that has been the latest of some parcel. */
  readonly parcel_status: { readonly status: string }
  /** The values that events have had in the members that filters can compare. Statuses are in `parcel_status`. `member`: the name in the event. */
  readonly event_value: { readonly member: FilteredMember; readonly value: string }
  readonly identifier: IdentifierTable
  readonly content: ContentTable
  readonly sighting: SightingTable
  readonly answer: AnswerTable
  readonly inbox: InboxTable
  readonly refusal: RefusalTable
  readonly feed: FeedTable
  readonly expected_push: ExpectedPushTable
  readonly endpoint: EndpointTable
  /** Events composed from polls. `body`: the bytes as they were first queued. */
  readonly composed_event: { readonly sequence: number; readonly body: Uint8Array }
  readonly delivery: DeliveryTable
  readonly attempt: AttemptTable
  readonly failure: FailureTable
  readonly job: JobTable
  readonly language_asked: { readonly parcel_id: number; readonly language: string; readonly sequence: number }
  readonly audit: {
    readonly sequence: number
    readonly at_ms: number
    readonly kind: string
    readonly parcel_id: number
    readonly detail: string
  }
  /** Which sequence and which parcel id were the highest at a time in the past. */
  readonly age_mark: { readonly at_ms: number; readonly sequence: number; readonly parcel_id: number }
  /** Erased identifiers, each as a keyed digest. */
  readonly tombstone: { readonly mark: string; readonly parcel_id: number; readonly erased_at_ms: number }
  /** The identifiers of erased parcels for which not all other records were searched yet. */
  readonly erasure: { readonly identifier: string }
  readonly operator_event: OperatorEventTable
  readonly operator_action: OperatorActionTable
  /** Sessions of the portal that were logged out. They are kept until they would have ended by themselves. */
  readonly ended_session: { readonly session: string; readonly until_ms: number }
  /** Lasting problems that operators were notified of. `count`: how many pushes were quarantined for the reason; 0 for any other problem. */
  readonly trouble: { readonly subject: string; readonly since_ms: number; readonly count: Generated<number> }
  readonly refused_pushes: RefusedPushesTable
  /** Pushes quarantined since operators were last notified. Each transaction inserts a row, so that none waits for another. */
  readonly quarantine_count: { readonly id: Generated<number>; readonly at_ms: number; readonly reason: string; readonly count: number }
  /** The counts of an hour or a day. `counts`: JSON, numbers by name. */
  readonly tally: { readonly span: string; readonly kind: string; readonly from_ms: number; readonly counts: string }
}

/** Periods in which a process refused pushes. */
interface RefusedPushesTable {
  /** The random name of the process. */
  readonly process: string
  readonly cause: string
  readonly from_ms: number
  readonly until_ms: number
  readonly count: number
  /** How many different pushes were refused, and how many of them have come again; both null: not known. */
  readonly pushes: number | null
  readonly again: number | null
}

/** The events that operators were notified of. */
interface OperatorEventTable {
  readonly id: Generated<number>
  readonly at_ms: number
  readonly event: string
  /** JSON: all members but `event` and `at`. */
  readonly detail: string
}

/** The orders of operators. (The table `audit` holds joins of parcels, so that they can be undone.) */
export interface OperatorActionTable {
  readonly id: Generated<number>
  readonly at_ms: number
  readonly by_kind: string
  readonly by_name: string
  /** The address from which the order came; null: from this machine. */
  readonly address: string | null
  readonly action: string
  readonly target_kind: string | null
  readonly target: string | null
  /** JSON, without secrets. */
  readonly detail: string
  /** The id of the form of the portal that gave the order; null: no form did. */
  readonly form: string | null
  /** JSON: what a repetition of the form needs (`decodeFormDetail`); null: it is no longer kept. */
  readonly form_detail: string | null
}

interface ParcelTable {
  readonly id: Generated<number>
  readonly watched_at_ms: number | null
  readonly first_pushed_at_ms: number | null
  readonly activated_at_ms: number
  readonly entry_count: number
  readonly latest_status: string | null
  readonly latest_at_ms: number | null
  /** When the relay learnt of the latest status, if that was before `latest_at_ms`; otherwise null. */
  readonly latest_learnt_at_ms: number | null
  readonly last_seen_at_ms: number | null
  readonly checked_at_ms: number | null
  readonly failures: number
  readonly next_poll_at_ms: number | null
  readonly stopped: string | null
  readonly is_full: number
}

interface IdentifierTable {
  readonly value: string
  readonly parcel_id: number
  /** 1: the carrier listed it in `trackingIds`. 0: an app asked for it, or a watch list named it. */
  readonly is_tracking_id: number
  /** When the carrier last answered that it does not know the identifier; null: never. */
  readonly refused_at_ms: number | null
}

interface ContentTable {
  readonly id: Generated<number>
  readonly digest: Uint8Array
  /** 1: no sighting used the content at the last check. A retention pass deletes the content if it is still unused. */
  readonly is_unused: Generated<number>
  readonly json: string
}

interface SightingTable {
  readonly parcel_id: number
  readonly at_ms: number
  /** How the carrier wrote the timestamp, as `encodeInstant` stores it. */
  readonly time_form: number
  readonly content_id: number
  readonly listing: number
  readonly ordinal: number
  readonly asked_at_ms: number
  readonly sequence: number
  /** When the relay first learnt of the sighting; null: that was before this column existed. */
  readonly learnt_at_ms: number | null
  /** The subscribers to which the sighting was sent, as `encodeAudience` and `encodeTellings` store them. */
  readonly audience: number
  readonly tellings: string | null
  /** JSON: unknown members as a list of name and JSON text; null: the entry has no unknown members. */
  readonly extra: string | null
}

interface AnswerTable {
  readonly parcel_id: number
  readonly language: string
  readonly digest: Uint8Array
  readonly asked_at_ms: number
  readonly entry_count: number
  readonly is_flawed: number
  /** Whether the answer decides the order of entries at equal instants. At most one answer of a parcel does. */
  readonly decides_order: number
  /** JSON: the answer's members about the parcel as a whole. */
  readonly head: string
  readonly body: Uint8Array | null
  /** What is left of an answer that decides the order and has lost its bytes: the 8 bytes of each `listedId`, in its order. */
  readonly listed: Uint8Array | null
}

interface InboxTable {
  readonly id: Generated<number>
  /** Digest of the body. Together with the parcel id it identifies a duplicate, even after the body was deleted. */
  readonly digest: Uint8Array
  readonly received_at_ms: number
  readonly key_index: number
  readonly content_encoding: string | null
  readonly state: number
  readonly reason: string | null
  /** 0: no parcel. */
  readonly parcel_id: number
  readonly duplicates: Generated<number>
  readonly body: Uint8Array | null
}

/** Pushes that were refused because their signature did not match. Only a sample is stored, and only its last few hundred pushes stay. */
interface RefusalTable {
  readonly id: Generated<number>
  readonly at_ms: number
  readonly address: string
  readonly verdict: string
  readonly key_name: string | null
  /** JSON: codes with their details, in order. */
  readonly causes: string
  readonly is_cut_short: number
  /** JSON: some of the push's headers by name. */
  readonly headers: string
  /** Null: the body was not read. */
  readonly body_bytes: number | null
  /** In hexadecimal; null: the body was not read. */
  readonly body_sha256: string | null
}

interface FeedTable {
  readonly sequence: number
  readonly kind: number
  readonly parcel_id: number
  readonly entry: number
  /** Where the body for endpoints is, as `encodePayloadRef` stores it; null: the event is not sent to endpoints. */
  readonly payload_ref: number | null
  /** The subscribers that have had the entry before and do not get it again, stored like the audience of a sighting. */
  readonly earlier_audience: Generated<number>
  readonly earlier_tellings: string | null
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
  /** JSON: the endpoint's settings, without its id, name and key. */
  readonly settings: string
  /** Why the endpoint is disabled; null: it is enabled. */
  readonly disabled: string | null
  /** Null: the endpoint is enabled, or was disabled before this column existed. */
  readonly disabled_at_ms: number | null
  /** The operator who disabled the endpoint; null: no operator did, or the operator is not known. */
  readonly disabled_by: string | null
  readonly succeeded_at_ms: number | null
  readonly failing_since_ms: number | null
  readonly failed_for_ms: Generated<number>
  /** JSON: ids of the parcels whose last attempts failed. */
  readonly failed_parcels: Generated<string>
  /** When the next probe is due; null: the endpoint is not failing. */
  readonly probe_at_ms: number | null
  readonly probes_failed: Generated<number>
  /** The endpoint refused the deliveries that were last attempted in this round or later; null: it refuses none. */
  readonly refused_from: number | null
  /** From this time on, a delivery that was not refused is used as a probe. */
  readonly refused_at_ms: number | null
  readonly round: Generated<number>
  readonly woken_at_ms: Generated<number>
  /** When operators were notified that the endpoint fails; null: they were not notified. */
  readonly alarmed_at_ms: number | null
  /** JSON: how fast an endpoint that limits us is sent deliveries; null: it has not limited us. */
  readonly pace: string | null
  /** JSON: the encrypted keys; null: the config file names the key. */
  readonly sealed_keys: string | null
  /** The feed is queued for the endpoint up to this sequence; null: the whole feed is queued. */
  readonly queued_to: number | null
  /** The sequence at which the endpoint began. It gets no earlier events of the feed. */
  readonly first_sequence: Generated<number>
  /** When the endpoint began. What has happened since then is sent to it (DOMAIN 7.1). */
  readonly began_at_ms: Generated<number>
  /** The endpoint gets backfill between these sequences. `from` null: it never got backfill. `to` null: it still gets backfill. */
  readonly backfill_from: number | null
  readonly backfill_to: number | null
  /** JSON: the same two sequences for each earlier period with backfill. */
  readonly backfill_earlier: Generated<string>
  readonly removed_at_ms: number | null
}

interface DeliveryTable {
  readonly id: Generated<number>
  readonly endpoint_id: number
  readonly parcel_id: number
  readonly sequence: number
  readonly previous_sequence: number
  /** The push whose bytes the delivery sends; null: it sends a composed event. */
  readonly inbox_id: number | null
  readonly state: number
  /** Why the delivery is dead or cancelled. A waiting delivery that has a reason will be skipped. */
  readonly reason: string | null
  readonly attempts: number
  /** How many of the attempts were not part of the retry schedule. */
  readonly spared: Generated<number>
  /** How many attempts the endpoint refused because it limits us. */
  readonly limited: Generated<number>
  /** The endpoint's round at the last attempt; 0: not attempted since it was queued; -1: an operator asked to send it next. */
  readonly round: Generated<number>
  readonly queued_at_ms: number
  readonly first_failed_at_ms: number | null
  readonly next_attempt_at_ms: number
  readonly settled_at_ms: number | null
  /** The accepted attempt, if its answer had no body; null: it is in the table `attempt`, or no attempt was accepted. */
  readonly accepted_at_ms: number | null
  readonly accepted_duration_ms: number | null
  readonly accepted_status: number | null
  readonly accepted_address: string | null
  /** The lived time (`ClockRecord`) at which the delivery was queued again; null: it was queued once. */
  readonly queued_lived_ms: number | null
}

/** Failed attempts at an endpoint, grouped by equal answers. */
interface FailureTable {
  readonly endpoint_id: number
  /** Identifies the answer. */
  readonly digest: string
  readonly status: number | null
  readonly reason: string | null
  /** The start of the last answer; null: the answer was empty. */
  readonly answer: Uint8Array | null
  readonly count: number
  readonly first_at_ms: number
  readonly last_at_ms: number
  readonly delivery_id: number
}

interface JobTable {
  readonly id: Generated<number>
  readonly kind: string
  /** JSON: the task. */
  readonly task: string
  readonly started_by: string
  readonly state: string
  /** JSON: the cursor to continue from; null: the job has not begun. */
  readonly place: string | null
  readonly done: number
  readonly failure: string | null
  readonly created_at_ms: number
  readonly started_at_ms: number | null
  /** Null: the job has not ended. */
  readonly ended_at_ms: number | null
  /** 1: operators were notified that the job has ended. */
  readonly end_told: Generated<number>
}

interface AttemptTable {
  readonly id: Generated<number>
  readonly delivery_id: number
  readonly at_ms: number
  readonly duration_ms: number
  readonly status: number | null
  readonly reason: string | null
  readonly answer: Uint8Array | null
  /** The IP address to which the attempt went. */
  readonly address: string | null
}

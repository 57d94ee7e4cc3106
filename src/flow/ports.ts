import type { BackoffPolicy } from '../domain/delivery/backoff.ts'
import type { AttemptResult, DeadReason, Delivery, Settlement } from '../domain/delivery/delivery.ts'
import type { Endpoint, EndpointChange, EndpointSettings } from '../domain/delivery/endpoint.ts'
import type { EndpointHealth } from '../domain/delivery/endpoint-health.ts'
import type { SealedKeys } from '../domain/delivery/endpoint-keys.ts'
import type { FeedItem } from '../domain/delivery/feed-event.ts'
import type { OperatorEvent } from '../domain/delivery/operator-event.ts'
import type { Entry } from '../domain/history/history.ts'
import type { PollObservation, QuarantineReason } from '../domain/history/observation.ts'
import type { KeptAnswer } from '../domain/history/parcel-record.ts'
import type { KeptSighting } from '../domain/history/sightings.ts'
import type { BackfillSpan, Told } from '../domain/history/told.ts'
import type { Remark } from '../domain/ingest/anomaly.ts'
import type { EventReading } from '../domain/ingest/parse-push.ts'
import type { MissedPushes } from '../domain/polling/model-codec.ts'
import type { PushHealth } from '../domain/polling/push-health.ts'

/** Wall clock for what is written down, monotonic clock for intervals; both in milliseconds. Injected so tests own time. */
export interface Clock {
  now(): number
  monotonic(): number
}

/** What the log takes: facts as fields, a sentence as message. Never secrets, never bodies. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

// ── the write side ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A verified push as it arrived: what is stored is exactly `body`. */
/** A push whose signature is right. */
export interface ReceivedPush {
  readonly body: Uint8Array
  /** The `Content-Encoding` header, if any: such a body is stored and quarantined, never inflated. */
  readonly contentEncoding: string | null
  readonly receivedAtMs: number
  /** Which of the configured keys matched, counted from 0. */
  readonly keyIndex: number
}

export interface IncomingPush extends ReceivedPush {
  readonly kind: 'push'
  /** What the body says, or why it says nothing. */
  readonly reading: EventReading
}

export interface IncomingPoll {
  readonly kind: 'poll'
  readonly observation: PollObservation
  /** Whether an app's question caused the poll: it then watches, and revives, the parcel (DOMAIN 1.5, 6.1). */
  readonly watch: boolean
}

export type Incoming = IncomingPush | IncomingPoll

/** What became of one observation. Everything but `failed` means durable. */
export type RecordOutcome =
  | {
      readonly kind: 'recorded'
      readonly parcelId: number
      readonly changed: boolean
      readonly newEntries: number
      /** Deliveries that were queued for it. */
      readonly queued: number
      /** What was odd about it, to be counted. */
      readonly remark?: Remark
    }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'quarantined'; readonly reason: QuarantineReason }
  /** A push older than `retention.history`: kept and not recorded, so that sent again under another clock it is no duplicate (DOMAIN 5.4). */
  | { readonly kind: 'expired' }

/** A parcel whose next poll is due, leased to the caller until `leaseMs` from the claim. */
export interface DuePoll {
  readonly parcelId: number
  /** In the order to try them: tracking numbers first, those the carrier does not know left out (DOMAIN 6.3). */
  readonly identifiers: readonly string[]
}

/** A question in one language for a parcel's entries, when it has been answered. */
export interface LanguageAsked {
  readonly parcelId: number
  readonly language: string
  /** The last entry that was known when the question left, by its sequence; 0: none was. */
  readonly knownTo: number
  /** The answer, which may list entries that came since; null: there was nothing to record. */
  readonly answer: Pick<PollObservation, 'language' | 'askedAtMs'> | null
}

/** How a poll of a parcel ended without an answer to record. */
export interface PollFailure {
  readonly parcelId: number
  /** `unknown`: the carrier knows none of its identifiers. `unavailable`: it could not be asked or answered badly. */
  readonly kind: 'unknown' | 'unavailable'
  readonly atMs: number
  /** The carrier's own word on when to ask again, if it gave one. */
  readonly retryAfterMs?: number
}

export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent byte for byte. */
  readonly body: Uint8Array
  readonly route?: Route
}

/** Posts to endpoints. What the other side or the network does is no error: failure is a value. */
export interface DeliverySender {
  send(request: PostRequest): Promise<AttemptResult>
  /** The same for thousands a second. `onEnd` is called once, and never before this returns. */
  post(request: PostRequest, onEnd: (result: AttemptResult) => void): void
}

/** How an endpoint is reached, if not plainly: through a proxy, and trusting a private authority (PEM) besides the well-known ones. */
export interface Route {
  readonly proxy?: string
  readonly ca?: string
}

export interface BatchReport {
  /** Same length and order as the batch. */
  readonly outcomes: readonly RecordOutcome[]
  /** Every parcel whose answers may have changed, those that were joined away included. */
  readonly touchedParcels: readonly number[]
  /** Parcels were joined, so what waits to be sent may have another place in the order by now; absent: none were. */
  readonly joined?: true
  /** How long the transaction took, its commit included. */
  readonly durationMs: number
}

export interface MissedPush {
  readonly parcelId: number
  /** One that the API accepts; null: the carrier knows none of its. */
  readonly identifier: string | null
  readonly eventAtMs: number
  readonly foundAtMs: number
}

export interface Watched {
  readonly parcelId: number
  /** No parcel had the identifier. */
  readonly created: boolean
}

export interface PushChannelView {
  readonly health: PushHealth
  /** The part of entries whose push is lost, as far as it can be told. */
  readonly loss: number
  /** The last push that brought something new; null: none ever did. */
  readonly lastPushAtMs: number | null
  /** Entries since then that only polls brought. */
  readonly missedSincePush: number
  readonly missed: MissedPushes
}

export interface PushNews {
  readonly health: PushHealth
  /** An operator event was queued. */
  readonly told: boolean
}

/** What must outlive a restart or a kill, so that a crash loop cannot exceed what the carrier accepts (DOMAIN 6.4). */
export interface CarrierMemory {
  /** When it was written, epoch milliseconds. */
  readonly atMs: number
  readonly days: readonly DayCalls[]
  /** Until when nothing leaves, because the carrier asked for it, epoch milliseconds; null: it did not. */
  readonly pausedUntilMs: number | null
  /** The same of the token endpoint, for the credentials alone. */
  readonly tokenPausedUntilMs: number | null
  /** Refused credentials; null: they are not. */
  readonly refusal: CredentialRefusal | null
}

/** Calls of one UTC day: those that were made, and those that may be made without being written down again. */
export interface DayCalls {
  /** Days since the epoch. */
  readonly day: number
  readonly calls: number
}

export interface CredentialRefusal {
  /** Tries since the credentials last worked. */
  readonly tries: number
  /** When they may be presented again, epoch milliseconds. */
  readonly untilMs: number
  /** Tells whether the password is still the one that was refused: a salt and a few bytes of its digest, too few to learn it from. */
  readonly mark: { readonly salt: string; readonly digest: string } | null
}

/** The verbs that write: plain data in and out, so the same value runs in-process or on a thread of its own (ARCHITECTURE). */
export interface WriteSide {
  /** One transaction: every observation durable, or (a throw) none. A bad observation is quarantined alone. */
  record(batch: readonly Incoming[]): Promise<BatchReport>
  /** Leases the most overdue watched parcels; those that are still being asked about are passed over. */
  claimDuePolls(request: {
    readonly nowMs: number
    readonly limit: number
    readonly leaseMs: number
    readonly asking?: readonly number[]
  }): Promise<readonly DuePoll[]>
  /** Leases the parcel of an identifier, due or not; null: there is none. */
  claimPoll(request: { readonly identifier: string; readonly nowMs: number; readonly leaseMs: number }): Promise<DuePoll | null>
  notePollFailure(failure: PollFailure): Promise<void>
  /** Remembers that the carrier answered 404 or 410 for an identifier of a known parcel (DOMAIN 6.3). */
  noteNotPollable(identifier: string): Promise<void>
  /** Remembers that a language was fetched for a parcel: asked again only when a newer entry lacks it (DOMAIN 4.2). */
  noteLanguageAsked(request: LanguageAsked): Promise<void>
  /** Watches an identifier, creating its parcel if it is unknown; also revives a stopped one. */
  watch(request: { readonly identifier: string; readonly nowMs: number }): Promise<Watched>
  /** The same for many identifiers in one transaction; one result each, in their order. */
  watchMany(request: { readonly identifiers: readonly string[]; readonly nowMs: number }): Promise<readonly Watched[]>
  /** Polls for the parcel of an identifier no more, until a push or an app's question revives it; null: there is none. Deletes nothing. */
  unwatch(request: { readonly identifier: string }): Promise<{ readonly parcelId: number } | null>
  /**
   * Moves the checks and deliveries of at most `limit` parcels with ids above `afterParcelId` back by what the wall clock was put back by. Returns the last
   * id it looked at; null: there are no more.
   */
  shiftSchedule(request: {
    readonly byMs: number
    readonly nowMs: number
    readonly afterParcelId: number
    readonly limit: number
  }): Promise<number | null>
  /** What the last run left about its dealings with the carrier; null: nothing. */
  carrierMemory(): Promise<CarrierMemory | null>
  rememberCarrier(memory: CarrierMemory): Promise<void>
  /** What is known of the push channel (see `domain/polling/push-health`). */
  pushChannel(): Promise<PushChannelView>
  /** Writes down what was learnt of the carrier's rhythm and pushes, when it is time to, and tells operators when pushes fall silent. */
  keepLearnt(): Promise<PushNews>
  /** Decides which polled entries whose grace has passed were missed pushes (DOMAIN 6.6). */
  settleMissedPushes(nowMs: number): Promise<readonly MissedPush[]>
  /** The secret the relay signs its own tokens with: made on first use, then kept. */
  tokenKey(): Promise<Uint8Array>
  /** Settles attempts and claims the next ones, in one transaction. */
  deliveryTurn(turn: DeliveryTurn): Promise<DeliveryTurnReport>
  /** How deliveries are settled and handed out from now on. */
  adjustDelivery(rules: DeliveryRules): Promise<void>
  /** Makes the endpoints of origin `config`, and the operator's, what the config file says; those it no longer names are removed. */
  syncEndpoints(configured: readonly ConfiguredEndpoint[], nowMs: number, operatorUrl: string | null): Promise<void>
  /** Queues an operator event, if the config says where they go. */
  tellOperator(event: OperatorEvent, nowMs: number): Promise<void>
  /** An id for an endpoint that is yet to be added: its key is sealed for it alone. */
  reserveEndpoint(nowMs: number): Promise<string>
  /** Adds a managed endpoint under an id that was reserved: it is owed what is in the feed from a sequence on; null: from now on. */
  addEndpoint(added: {
    readonly id: string
    readonly settings: EndpointSettings
    readonly key: string
    readonly from: number | null
  }): Promise<EndpointEdit>
  /** Queues a stretch of the feed for an endpoint that starts further back; `isDone`: no endpoint has more to be queued. */
  catchUp(request: { readonly limit: number; readonly nowMs: number }): Promise<{ readonly queued: number; readonly isDone: boolean }>
  /** Changes a managed endpoint; one of the config can only be enabled again after it was disabled by what it answered. */
  changeEndpoint(request: EndpointChangeRequest): Promise<EndpointEdit>
  /** Removes a managed endpoint; what waits for it is cancelled, see `cancelRemoved`. */
  removeEndpoint(request: { readonly id: string; readonly nowMs: number }): Promise<EndpointEdit>
  /** Records a quarantined or expired push from the inbox, as if it came now. What cannot be recorded stays there, with the reason of now. */
  reprocess(request: { readonly inboxId: number; readonly nowMs: number }): Promise<Reprocessed>
  /** Queues a stretch of the events of ended deliveries again, under the ids they had; null: nothing can be queued for that endpoint now. */
  replayDeliveries(request: ReplayRequest): Promise<ReplayedStretch | null>
  /** Writes down as cancelled what still waits for endpoints that were removed, a stretch at a time; `isDone`: nothing does. */
  cancelRemoved(request: { readonly limit: number }): Promise<{ readonly isDone: boolean }>
  /** Begins a job; null: too many have not ended. */
  startJob(request: { readonly task: JobTask; readonly by: string; readonly nowMs: number }): Promise<Job | null>
  /** Does a stretch of the oldest job that has not ended; `isDone`: there is none. Where it is stands in the store, so a restart goes on from there. */
  workOnJobs(request: { readonly limit: number; readonly nowMs: number }): Promise<{ readonly isDone: boolean }>
  /** Ends a job where it is; one that has ended stays as it ended. Null: there is none. */
  cancelJob(request: { readonly jobId: number; readonly nowMs: number }): Promise<Job | null>
  /** Makes everything that waits for an endpoint due now. `disabled`: nothing is sent to it until it is enabled. */
  retryEndpoint(request: { readonly id: string; readonly nowMs: number }): Promise<'done' | 'unknown' | 'disabled'>
  /** Makes one delivery due now, before what else waits for its endpoint. `behind`: an earlier one of its parcel goes first. */
  retryDelivery(request: {
    readonly deliveryId: number
    readonly nowMs: number
  }): Promise<'done' | 'unknown' | 'disabled' | 'behind' | 'ended'>
  /** What this relay calls itself in the ids of events: made on first use, then kept. */
  relayId(): Promise<string>
  close(): Promise<void>
}

// ── what writing needs of the store ───────────────────────────────────────────────────────────────────────────────────────────────

/** What is known of a parcel apart from its sightings. Times are epoch milliseconds. */
export interface ParcelState {
  readonly parcelId: number
  /** Since when it is polled for; null: it is not. */
  readonly watchedAtMs: number | null
  /** The earliest `eventTime` a push brought; null: none did. */
  readonly firstPushedAtMs: number | null
  /** The last push, app's question or order to watch. */
  readonly revivedAtMs: number
  readonly entryCount: number
  /** Of the first entry of its history. */
  readonly latest: { readonly status: string; readonly atMs: number } | null
  /** When the carrier was last heard about it, by push or poll. */
  readonly heardAtMs: number | null
  readonly checkedAtMs: number | null
  readonly failures: number
  readonly nextPollAtMs: number | null
  readonly stopped: 'delivered' | 'stale' | 'unknown' | 'unwatched' | null
  /** It reached the most entries a parcel may hold. */
  readonly full: boolean
}

/** A parcel that is joined with others, and all that was sighted of it. */
export interface JoinedParcel {
  readonly state: ParcelState
  readonly sightings: readonly KeptSighting[]
}

/** Parcels that proved to be one (DOMAIN 1.4). */
export interface ParcelJoin {
  /** The one that goes on, as it was. */
  readonly survivor: JoinedParcel
  /** Those that are no more, in the order in which they are joined to it, each with the sequence of that. */
  readonly others: readonly (JoinedParcel & { readonly sequence: number })[]
  /** The survivor as it is from now on. */
  readonly parcel: ParcelState
  /** The sightings that more than one of them holds, as they are kept from now on. */
  readonly shared: readonly KeptSighting[]
  readonly nowMs: number
}

/** A place in the order of falling due. */
export interface DuePlace {
  readonly parcelId: number
  readonly dueAtMs: number
}

export interface AskablePoll extends DuePoll {
  /** A push came since the last check, so that the check may no longer be due. */
  readonly pushedSince: boolean
}

export interface IdentifierState {
  readonly value: string
  readonly parcelId: number
  /** Whether the carrier named it in `trackingIds`; if not, somebody asked for it. */
  readonly isTrackingId: boolean
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

/** What came of processing a push from the inbox again. `settled`: it is recorded already. `body_gone`: its bytes are no longer kept. */
export type Reprocessed =
  /** Of this one push. */
  { readonly kind: 'done'; readonly report: BatchReport } | { readonly kind: 'unknown' | 'settled' | 'body_gone' }

/** A push as it is kept: the bytes, and what became of it. */
export interface InboxEntry {
  readonly push: IncomingPush
  readonly state: 'recorded' | 'quarantined' | 'expired'
  readonly reason: QuarantineReason | null
  readonly parcelId: number | null
}

/** What endpoints are sent for an entry: the bytes of a push, or an event that is composed (DOMAIN 7.1). */
export type Carried =
  | { readonly kind: 'push'; readonly inboxId: number; readonly distributionType: string }
  | { readonly kind: 'composed'; readonly trackingIds: readonly string[]; readonly distributionType: string }

export interface FeedEntries {
  readonly entries: readonly FeedEntry[]
  /** The last sequence that was looked at. */
  readonly next: number
  /** Whether there is no more. */
  readonly ended: boolean
}

/** An event of the feed that endpoints are sent, told from what is known now. */
export interface FeedEntry {
  readonly sequence: number
  readonly parcelId: number
  readonly entry: Entry
  readonly carried: Carried
  readonly backfill: boolean
  /** Whom the entry had been told of before: they are not sent it. */
  readonly toldBefore: Told
}

export interface KeptPush {
  readonly inboxId: number
  readonly digest: Uint8Array
  readonly body: Uint8Array
}

export interface FeedEvent {
  readonly sequence: number
  readonly kind: 'entry' | 'update' | 'united' | 'split' | 'join'
  readonly parcelId: number
  /**
   * The sequence of a sighting of the entry it is about, of the one that is told of if endpoints are sent it; that of the event itself when it
   * is about the parcel; for `join` the parcel that is no more.
   */
  readonly entry: number
  /** What endpoints are sent for it, and who is not because the entry was told of before; null: nothing. */
  readonly carries: (Carries & { readonly toldBefore: Told }) | null
}

/** A push as it was received, or an event composed of an entry. */
export type Carries = { readonly kind: 'push'; readonly inboxId: number } | { readonly kind: 'composed'; readonly backfill: boolean }

/**
 * The store inside one transaction. Every verb sees what the ones before it did. Of those that give nothing nobody waits: what goes wrong
 * with one throws at once, or fails the transaction later.
 */
export interface WriteTx {
  nextSequence(): number
  /** The number a push is kept under; null: it is a duplicate of one of its parcel's (of those not understood), and was only counted. */
  saveInbox(entry: InboxEntry): Promise<number | null>
  /** Takes back what was kept in this transaction. */
  deleteInbox(inboxId: number): Promise<void>
  /** Null: there is none. */
  findPush(inboxId: number): Promise<InspectedPush | null>
  /** Keeps a push that was not recorded otherwise than before; null: it is a duplicate after all, which has taken its place. */
  resettlePush(inboxId: number, entry: InboxEntry): Promise<number | null>
  findIdentifiers(values: readonly string[]): Promise<readonly IdentifierState[]>
  /** The parcel that has a tracking id, if both are at hand without a look into the store; null says nothing. */
  recallParcel(trackingId: string): ParcelState | null
  saveIdentifier(identifier: IdentifierState): void
  createParcel(nowMs: number): Promise<ParcelState>
  /** Null: there is none, because it was joined to another. */
  findParcel(parcelId: number): Promise<ParcelState | null>
  /** A parcel that must be there. */
  loadParcel(parcelId: number): Promise<ParcelState>
  saveParcel(state: ParcelState): void
  /** The same for several, in the order given. */
  loadParcels(parcelIds: readonly number[]): Promise<readonly ParcelState[]>
  /** Moves all that is known of parcels to one of them and writes down what was whose, so that it can be undone (DOMAIN 1.4). */
  joinParcels(join: ParcelJoin): Promise<void>
  /** Those that may be asked for at this time, in the order to try them (DOMAIN 6.3). */
  pollableIdentifiers(parcelId: number, nowMs: number): Promise<readonly string[]>
  /** The sightings of a parcel within a second since the epoch, or all of them. */
  loadSightings(parcelId: number, second: number | null): Promise<readonly KeptSighting[]>
  /** All sightings of several parcels, by parcel; one without any is left out. */
  loadSightingsOf(parcelIds: readonly number[]): Promise<ReadonlyMap<number, readonly KeptSighting[]>>
  saveSighting(parcelId: number, kept: KeptSighting): Promise<void>
  /** What is kept of polled answers. */
  loadAnswers(parcelId: number): Promise<readonly KeptAnswer[]>
  /** The sighting ids of the order answer, in its order. */
  loadOrder(parcelId: number): Promise<readonly string[]>
  saveAnswer(request: {
    readonly parcelId: number
    readonly answer: KeptAnswer
    readonly body: Uint8Array
    readonly decidesOrder: boolean
  }): Promise<void>
  dropAnswers(parcelId: number, answers: readonly KeptAnswer[]): Promise<void>
  appendFeed(event: FeedEvent): void
  /** The last sequence given, and up to which events of the feed are gone (0: none are). */
  feedSpan(): Promise<{ readonly last: number; readonly prunedTo: number }>
  /** What endpoints are sent for the events of the feed after a sequence, of which `limit` are looked at. */
  readFeedEntries(request: { readonly after: number; readonly limit: number }): Promise<FeedEntries>
  /** Recorded pushes of a parcel whose bytes are kept, in the order of their digests, after one of them. */
  listPushes(request: { readonly parcelId: number; readonly after: Uint8Array; readonly limit: number }): Promise<readonly KeptPush[]>
  expectPush(request: {
    readonly parcelId: number
    readonly entry: number
    readonly eventAtMs: number
    readonly foundAtMs: number
    readonly dueAtMs: number
  }): Promise<void>
  duePushes(nowMs: number, limit: number): Promise<readonly ExpectedPush[]>
  settlePush(entry: number): Promise<void>
  /** Parcels whose check is due and that nobody leased, the most overdue first, from a place in that order on. */
  duePolls(request: { readonly nowMs: number; readonly limit: number; readonly after: DuePlace | null }): Promise<readonly DuePlace[]>
  /** What there is to know before asking, of those among the parcels that are due and that nobody leased; in the order given. */
  askableOf(request: { readonly parcelIds: readonly number[]; readonly nowMs: number }): Promise<readonly AskablePoll[]>
  /** Until then they are not due for anybody else. A lease is for the run that takes it: one that is killed leaves none. */
  leasePolls(parcelIds: readonly number[], untilMs: number): void
  /** Ends the lease: the poll is over. */
  releasePoll(parcelId: number): void
  /** See the verb of the same name. */
  shiftSchedule(request: Parameters<WriteSide['shiftSchedule']>[0]): Promise<number | null>
  markNotPollable(identifier: string, nowMs: number): Promise<void>
  /** Up to which sequence; what was marked further stays so. */
  markLanguageAsked(parcelId: number, language: string, sequence: number): Promise<void>
  /** Those that are not removed. */
  listEndpoints(): Promise<readonly EndpointState[]>
  /** An id that no endpoint has, and none will get but by `saveEndpoint`. */
  reserveEndpoint(nowMs: number): Promise<string>
  /** Adds one when its id is '' or reserved; returns the id. */
  saveEndpoint(state: EndpointState): Promise<string>
  /** Of an endpoint whose health is all that changed. */
  saveHealth(endpointId: string, health: EndpointHealth): void
  /** From then on nothing is handed out for it; what waits is cancelled, see `cancelRemoved`. */
  removeEndpoint(endpointId: string, nowMs: number): Promise<void>
  saveComposedEvent(sequence: number, body: Uint8Array): Promise<void>
  queueDelivery(delivery: QueuedDelivery): Promise<void>
  /** How claimed deliveries of an endpoint, by their ids, stand by now. */
  reviewClaims(deliveryIds: readonly number[]): Promise<ReviewedClaims>
  /** The deliveries of an endpoint that may go next, the most overdue first; of a parcel at most one. */
  findNextDeliveries(request: NextRequest): Promise<readonly NextDelivery[]>
  /** What an endpoint that is failing is asked with next: what was never attempted first, then what was last attempted longest ago. */
  findProbe(request: ProbeRequest): Promise<NextDelivery | null>
  /** Puts a delivery that may go, now or later, before what else waits for its endpoint; tells how it stands. Null: there is none. */
  hastenDelivery(deliveryId: number): Promise<{ readonly endpointId: string; readonly state: 'due' | 'behind' | 'ended' } | null>
  /** Whether something of another parcel may go to an endpoint, now or later. */
  waitsForOthers(endpointId: string, parcelId: number): Promise<boolean>
  /** See the verbs of the same names. */
  replayDeliveries(request: ReplayRequest): Promise<ReplayedStretch>
  cancelRemoved(limit: number): Promise<{ readonly isDone: boolean }>
  insertJob(task: JobTask, by: string, nowMs: number): Promise<Job>
  /** The oldest first. */
  listUnendedJobs(limit: number): Promise<readonly UnendedJob[]>
  saveJob(job: UnendedJob, nowMs: number): Promise<void>
  cancelJob(jobId: number, nowMs: number): Promise<Job | null>
  /** Writes attempts down and what they made of their deliveries; when that ends one, its parcel's next one may go. */
  saveSettlements(settled: readonly Settled[], nowMs: number): void
  loadSetting(name: string): Promise<Uint8Array | null>
  saveSetting(name: string, value: Uint8Array): Promise<void>
}

/** `perEndpoint`: attempts at the same time to one that says nothing else. */
export interface DeliveryRules {
  readonly policy: BackoffPolicy
  readonly perEndpoint: number
}

/** `from`: the sequence it starts at when it is new; null or absent: what is recorded from then on. */
export type ConfiguredEndpoint = EndpointSettings & { readonly from?: number | null }

/** An endpoint and how it fares. */
export interface EndpointState {
  readonly endpoint: Endpoint
  /** `config`: the config file says what it is; `managed`: the API does; `operator`: where operator events go. */
  readonly origin: 'config' | 'managed' | 'operator'
  /** Why it is disabled: by order, by its 410, or by nothing but failures; null: it is not. */
  readonly disabled: 'operator' | 'gone' | 'failing' | null
  readonly health: EndpointHealth
  /** Null: the config file names its key. */
  readonly keys: SealedKeys | null
  /** Up to which sequence the feed has been queued for it; null: all of it, or all it is owed. */
  readonly queuedTo: number | null
  /** Over which events it was given backfill; null: over none. */
  readonly backfilled: BackfillSpan | null
}

/** How much is owed to an endpoint, and was given up. */
export interface EndpointBacklog {
  readonly waiting: number
  /** When the first of what waits was queued; null: nothing waits. */
  readonly oldestAtMs: number | null
  readonly dead: number
}

export interface EndpointChangeRequest {
  readonly id: string
  readonly change: EndpointChange
  readonly key: KeyChange | null
  readonly nowMs: number
}

/** `rotate`: another key, sealed, takes over after a time in which both sign; `replace`: at once; `end`: the one that is to take over does so now. */
export type KeyChange = { readonly kind: 'rotate' | 'replace'; readonly sealed: string } | { readonly kind: 'end' }

/** What came of an edit. `read_only`: the config file says what it is; `not_rotating`: no key is being replaced. */
export type EndpointEdit =
  | { readonly kind: 'done'; readonly state: EndpointState }
  | { readonly kind: 'unknown' | 'name_taken' | 'read_only' | 'not_rotating' }
  /** It cannot start there: events before `oldest` are no longer kept, or none has a sequence above `last`. */
  | { readonly kind: 'from_gone'; readonly oldest: number }
  | { readonly kind: 'from_ahead'; readonly last: number }

/** Keeps the keys of endpoints from whoever reads the store. */
export interface Vault {
  seal(key: string, endpointId: string): Promise<string>
  /** Null: it was sealed for another endpoint, or with a key that is not to be had any more. */
  open(sealed: string, endpointId: string): Promise<string | null>
}

/** Ended deliveries of one endpoint: those for which all of this is true. */
export interface DeliverySelection {
  readonly endpointId: string
  readonly states: readonly ('delivered' | 'dead' | 'cancelled')[]
  readonly fromSequence: number
  /** When they were queued at the earliest. */
  readonly fromMs: number
  /** Null: any. */
  readonly deliveryId: number | null
  readonly sequence: number | null
  readonly parcelId: number | null
}

export interface ReplayTask {
  readonly selection: DeliverySelection
  /** The endpoint they are queued for: their own, or another, which then has deliveries of the same events. */
  readonly to: string
  /** When it was asked for: what is selected by its time was queued no later. */
  readonly untilMs: number
}

/** Where a replay goes on: after the delivery with this sequence, or time, and id. */
export interface ReplayPlace {
  readonly at: number
  readonly id: number
}

export interface ReplayRequest extends ReplayTask {
  /** Null: it begins. */
  readonly after: ReplayPlace | null
  readonly limit: number
  readonly nowMs: number
}

export interface ReplayedStretch {
  readonly count: number
  /** Null: there is no more. */
  readonly next: ReplayPlace | null
}

/** What takes long, by its kind. */
export type JobTask = { readonly kind: 'replay' } & ReplayTask

/** Long work, as operators look at it. Times are epoch milliseconds. */
export interface Job {
  readonly jobId: number
  readonly task: JobTask
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'
  /** Who asked for it. */
  readonly by: string
  /** How much of it is done; of a replay, how many deliveries were queued. */
  readonly done: number
  /** Why it failed. */
  readonly failure: string | null
  readonly createdAtMs: number
  readonly startedAtMs: number | null
  readonly endedAtMs: number | null
}

export interface UnendedJob extends Job {
  /** Where it goes on; null: it has not begun. */
  readonly place: ReplayPlace | null
}

export interface DeliveryQuery {
  /** Null: any. */
  readonly endpointId: string | null
  readonly state: ListedDelivery['state'] | null
  readonly parcelId: number | null
  /** Deliveries with ids below this; null: from the newest. */
  readonly before: number | null
  readonly limit: number
}

export interface DeliveryPage {
  /** The newest first; perhaps fewer than asked for, even none, while there is a `next`. */
  readonly deliveries: readonly FoundDelivery[]
  readonly next: number | null
}

/** A delivery with everything that finds its parcel. */
export interface FoundDelivery extends ListedDelivery {
  readonly identifiers: readonly string[]
}

export interface SentEvent {
  /** That of the endpoint as it stands now. */
  readonly url: string
  /** Null: it is gone by age. */
  readonly body: Uint8Array | null
}

/** `held`: it waits because its endpoint is disabled. */
export interface ListedDelivery {
  readonly deliveryId: number
  readonly endpointId: string
  readonly endpointName: string
  readonly parcelId: number
  readonly sequence: number
  readonly previousSequence: number
  readonly state: 'queued' | 'retrying' | 'held' | 'delivered' | 'dead' | 'cancelled'
  /** Why it is dead or cancelled. */
  readonly reason: DeadReason | 'endpoint_removed' | null
  readonly attempts: number
  readonly queuedAtMs: number
  /** Null: it waits for an earlier one of its parcel, or for its endpoint, which is failing, or it has ended. */
  readonly nextAttemptAtMs: number | null
  readonly settledAtMs: number | null
}

export interface MadeAttempt {
  readonly atMs: number
  readonly durationMs: number
  /** Null: there was no answer, for the reason given. */
  readonly status: number | null
  readonly reason: string | null
  readonly answerStart: Uint8Array
}

export interface QueuedDelivery {
  readonly endpointId: string
  readonly parcelId: number
  readonly sequence: number
  /** The push whose exact bytes it carries; null: the composed event of its sequence. */
  readonly inboxId: number | null
  readonly nowMs: number
}

/** A delivery that was handed out, by its id, and whom it is for. */
export interface ClaimRef {
  readonly deliveryId: number
  readonly endpointId: string
}

export interface DeliveryRef extends Delivery, ClaimRef {
  readonly parcelId: number
  readonly sequence: number
  /** When it was to be attempted by its schedule: later than it was claimed if it was woken, or is a probe. */
  readonly plannedAtMs: number
}

/** A delivery that is somebody's to attempt. */
export interface ClaimedDelivery extends DeliveryRef {
  /** 0: there was none. */
  readonly previousSequence: number
  /** Null: it is no longer kept. */
  readonly body: Uint8Array | null
}

/** What became of a claimed delivery; `attempts` as it was claimed. */
export interface SettledAttempt extends DeliveryRef {
  readonly result: AttemptResult
  /** When the attempt began. */
  readonly atMs: number
  /** From 0 (inclusive) to 1 (exclusive): what jitter is made of. */
  readonly random: number
}

/** An attempt, and what it made of its delivery; `attempts` with this one counted. */
export interface Settled extends SettledAttempt {
  readonly settlement: Settlement
  /** Of its endpoint, after this attempt. */
  readonly round: number
}

export interface ProbeRequest {
  readonly endpointId: string
  /** A parcel, by id, that is left out; null: none is. */
  readonly exceptParcelId: number | null
  readonly nowMs: number
}

export interface NextRequest {
  readonly endpointId: string
  /** Of the endpoint's health: what was last attempted in an earlier round is due since it was woken. */
  readonly round: number
  readonly wokenAtMs: number
  /** The parcels of what is claimed: nothing of theirs goes before that has ended. */
  readonly besides: readonly number[]
  readonly limit: number
  readonly nowMs: number
}

/** Claimed deliveries of an endpoint: in the order of their parcels something else may have come before them since. */
export interface ReviewedClaims {
  readonly parcelIds: readonly number[]
  /** The ids of those that are not the first of their parcel any more, or not the only ones of it that are claimed, or have ended. */
  readonly overtaken: readonly number[]
}

/** Of what is not due yet the body is not looked for. */
export interface NextDelivery extends ClaimedDelivery {
  readonly dueAtMs: number
}

/** What ended since the last turn, and how much more may be started. */
export interface DeliveryTurn {
  readonly settled: readonly SettledAttempt[]
  /**
   * The ids of what is claimed besides these, by endpoint id: everything that is under way or waits to be sent, and nothing else. A claim is
   * nowhere but with who holds it, so it ends when he says no more of it, and none is lost or lapses while an attempt is under way.
   */
  readonly inFlight: Readonly<Record<string, readonly number[]>>
  /** How many attempts an endpoint's rate allows now, by id; those without a rate are not in it. */
  readonly allowance: Readonly<Record<string, number>>
  readonly claimsMax: number
  readonly nowMs: number
}

export interface EndpointNotice {
  readonly endpoint: string
  readonly endpointId: string
  /** `recovered`: it took something again after an hour or more of nothing but failures. */
  readonly kind: 'disabled_gone' | 'disabled_failing' | 'recovered'
}

export interface DeliveryTurnReport {
  readonly claimed: readonly ClaimedDelivery[]
  /** What was claimed before and must not be begun any more: by now something else of its parcel goes first, or may be under way. */
  readonly overtaken: readonly ClaimRef[]
  readonly endpoints: readonly EndpointState[]
  /** What operators should hear of, once each. */
  readonly notices: readonly EndpointNotice[]
  /** Endpoints, by id, that have all they may at once: mostly there is more. */
  readonly more: readonly string[]
  /** When something else falls due; null: nothing waits that has room to go. */
  readonly nextAtMs: number | null
  /** Whether pushes come as fast as they are recorded, so that their senders wait for every turn; absent: that is not known. */
  readonly isRush?: boolean
}

/** An entry that only polls have brought so far, until its grace is over (DOMAIN 6.6). */
export interface ExpectedPush {
  readonly parcelId: number
  readonly entry: number
  readonly eventAtMs: number
  readonly foundAtMs: number
}

export interface WriteStore {
  /** Commits, durably, when `work` resolves; undoes everything when it rejects. One at a time. */
  transaction<T>(work: (tx: WriteTx) => Promise<T>): Promise<T>
  /** Within `transaction`: undoes only `work` when that rejects. */
  savepoint<T>(tx: WriteTx, work: () => Promise<T>): Promise<T>
  /** Whether an error came from the store (full, unreadable, locked) rather than from what was being recorded. */
  isStorageFailure(error: unknown): boolean
}

// ── the read side ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Everything an answer about a parcel is made from. */
export interface ParcelView {
  readonly parcelId: number
  /** Newest first (DOMAIN 3). */
  readonly entries: readonly Entry[]
  readonly trackingIds: readonly string[]
  readonly distributionType: string
  /** Unknown members of the last-asked answer, re-served after the known ones. */
  readonly extra: readonly (readonly [name: string, json: string])[]
  /** When the carrier was last heard about this parcel, by push or poll; null: never. */
  readonly heardAtMs: number | null
  readonly watched: boolean
  /** Languages that were fetched and for which no newer entry has come since: not to be fetched again (DOMAIN 4.2). */
  readonly languagesAsked: readonly string[]
}

export interface StoreCounts {
  readonly parcels: number
  readonly watched: number
  readonly overdue: number
  readonly quarantined: number
}

export interface FeedReading {
  readonly items: readonly FeedItem[]
  /** The last sequence that was looked at: that of parcels erased since included. */
  readonly next: number
  /** Whether there was no more at that moment. */
  readonly ended: boolean
  /** Events up to this sequence are gone; 0: none are. */
  readonly prunedTo: number
  /** The last sequence that was given to anything. */
  readonly last: number
}

/** Tells those who follow the feed that something was committed. */
export interface FeedSignal {
  /** How often it was told so far: to be taken before looking. */
  seen(): number
  /** Resolves once it was told more often than `seen`, the time is over, it is closed, or who waits has left. */
  wait(seen: number, timeoutMs: number, left: AbortSignal): Promise<void>
  isClosed(): boolean
}

/**
 * Which parcels, and where to go on. Those with an identifier that starts with `prefix` come by identifier; others by their next check, the
 * most overdue first, then those without one by the reason they stopped.
 */
export interface ParcelQuery {
  readonly prefix: string | null
  /** The latest status. */
  readonly status: string | null
  readonly stopped: ParcelState['stopped']
  readonly after: ParcelCursor | null
  readonly limit: number
}

/** The place after one parcel in the order of a list. */
export type ParcelCursor =
  | { readonly by: 'identifier'; readonly value: string }
  | { readonly by: 'next'; readonly atMs: number; readonly parcelId: number }
  | { readonly by: 'stopped'; readonly reason: NonNullable<ParcelState['stopped']>; readonly parcelId: number }

export interface ParcelPage {
  readonly parcels: readonly ListedParcel[]
  readonly next: ParcelCursor | null
}

export interface ListedParcel {
  readonly state: ParcelState
  readonly identifiers: readonly InspectedIdentifier[]
}

export interface InspectedIdentifier {
  readonly value: string
  readonly isTrackingId: boolean
  /** When the carrier last said that it does not know it; null: never. */
  readonly refusedAtMs: number | null
}

export interface InspectedParcel extends ListedParcel {
  /** Newest first. */
  readonly entries: readonly Entry[]
}

/** Reads, on connections of their own. */
export interface ReadSide {
  /** By any of its identifiers; null: unknown. */
  findParcel(identifier: string): Promise<ParcelView | null>
  counts(nowMs: number): Promise<StoreCounts>
  /** A page of parcels; it may hold fewer than asked for, even none, while there is a `next`. */
  listParcels(query: ParcelQuery): Promise<ParcelPage>
  /** All that is known of one parcel, by any of its identifiers; null: unknown. */
  inspectParcel(identifier: string): Promise<InspectedParcel | null>
  /** Events of the feed after a sequence, of one moment, told from what is known at that moment. */
  /** Every status that was the latest of any parcel, up to a thousand. */
  listStatuses(): Promise<readonly string[]>
  readFeed(request: { readonly after: number; readonly limit: number }): Promise<FeedReading>
  /** Those that are not removed, in the order they were added. */
  listEndpoints(): Promise<readonly EndpointState[]>
  /** What waits for an endpoint and what is dead, counted in stretches between which others read. */
  countBacklog(endpointId: string): Promise<EndpointBacklog>
  listDeliveries(query: DeliveryQuery): Promise<DeliveryPage>
  listInbox(query: InboxQuery): Promise<InboxPage>
  /** With its bytes; null: there is none. */
  findPush(inboxId: number): Promise<InspectedPush | null>
  /** With its attempts, the last one first; null: there is none. */
  findDelivery(
    id: number,
  ): Promise<{ readonly delivery: FoundDelivery; readonly attempts: readonly MadeAttempt[]; readonly sent: SentEvent } | null>
  /** Counted up to a limit. */
  countReplayable(request: { readonly selection: DeliverySelection; readonly limit: number; readonly untilMs: number }): Promise<number>
  /** The newest first, with ids below `before`. */
  listJobs(query: { readonly before: number | null; readonly limit: number }): Promise<readonly Job[]>
  findJob(jobId: number): Promise<Job | null>
  /** Throws when the store cannot answer. */
  ping(): Promise<void>
  close(): Promise<void>
}

// ── what is remembered ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * What a flow remembers for a while: bounded, so any value may be gone at any time and losing it costs only work.
 * A `Map` is one that never forgets.
 */
export interface Memory<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): unknown
  delete(key: string): unknown
}

/** An encoded answer, kept until something is learnt about its parcel. */
export interface CachedAnswer {
  readonly parcelId: number
  readonly body: Buffer
  readonly etag: string
  readonly contentLanguage: string
  /** As of the reading: kept beside the body, so that `Age` goes on counting. */
  readonly heardAtMs: number | null
}

/** Encoded answers by question. */
export interface AnswerCache {
  /** Undefined as well when its parcel has changed since. */
  get(key: string): CachedAnswer | undefined
  /** As of now: to be taken before the store is read for an answer. */
  mark(): bigint
  /** `mark`: what was committed before it is in the answer. */
  set(key: string, answer: CachedAnswer, mark: bigint): void
  /** Every answer about these parcels that was read until now is no longer true. */
  invalidate(parcelIds: readonly number[]): void
}

// ── the carrier ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** `app`: somebody waits for the answer; `schedule`: nobody does. Apps go first when the budget is short (DOMAIN 6.4). */
export type CallPriority = 'app' | 'schedule'

export type CarrierAnswer =
  | { readonly kind: 'found'; readonly observation: PollObservation }
  /** The carrier's 404 or 410, the only ones that mean not found (DOMAIN 1.5). */
  | { readonly kind: 'not_found' }
  | { readonly kind: 'unavailable'; readonly reason: UnavailableReason; readonly retryAfterMs?: number }

export type UnavailableReason =
  | 'budget'
  /** It failed again and again, and is left alone for a while. */
  | 'resting'
  | 'credentials'
  | 'timeout'
  | 'network'
  | 'rate_limited'
  | 'server_error'
  | 'redirect'
  | 'bad_response'
  | 'token_bad_response'
  | 'rejected'

/** The carrier's pull API. Never throws for what the carrier or the network does: failure is a value. */
export interface Carrier {
  /** Asks `all` for one identifier in one language. */
  fetchAll(request: {
    readonly identifier: string
    readonly language: string
    readonly priority: CallPriority
    readonly signal?: AbortSignal
  }): Promise<CarrierAnswer>
  state(): CarrierState
}

/** For `/readyz`, metrics and operators. */
export interface CarrierState {
  readonly credentials: 'unknown' | 'accepted' | 'refused'
  readonly lastAnswerAtMs: number | null
  readonly lastFailure: { readonly reason: UnavailableReason; readonly atMs: number } | null
  readonly budget: { readonly waiting: number; readonly inFlight: number; readonly callsToday: number; readonly callsPerDay: number }
  /** See `domain/polling/breaker`; `restMs`: until the schedule may ask again. */
  readonly breaker: { readonly state: 'closed' | 'open' | 'probing'; readonly failures: number; readonly restMs: number }
}

/** Where flows report what happened; the composition root turns it into metrics. */
export interface Meter {
  pushReceived(outcome: string, keyIndex: number | null, count?: number): void
  batchCommitted(size: number, durationMs: number): void
  pollEnded(outcome: string): void
  missedPush(latencyMs: number): void
  /** `endpoint`: its name. */
  deliveryAttempted(endpoint: string, outcome: 'accepted' | 'rejected' | 'failed', durationMs: number): void
  merged(result: string, count: number): void
  served(result: 'hit' | 'fetched' | 'stale' | 'not_found' | 'unavailable'): void
}

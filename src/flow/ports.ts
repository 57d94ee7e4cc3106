import type { PollObservation, QuarantineReason } from '../domain/observation.ts'
import type { Entry } from '../domain/history.ts'

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
export interface IncomingPush {
  readonly kind: 'push'
  readonly body: Uint8Array
  /** The `Content-Encoding` header, if any: such a body is stored and quarantined, never inflated. */
  readonly contentEncoding: string | null
  readonly receivedAtMs: number
  /** Which of the configured keys matched, counted from 0. */
  readonly keyIndex: number
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
  | { readonly kind: 'recorded'; readonly parcelId: number; readonly changed: boolean; readonly newEntries: number }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'quarantined'; readonly reason: QuarantineReason }
  /** A push older than `retention.history`: counted, not recorded (DOMAIN 5.4). */
  | { readonly kind: 'expired' }

/** A parcel whose next poll is due, leased to the caller until `leaseMs` from the claim. */
export interface DuePoll {
  readonly parcelId: number
  /** In the order to try them: tracking numbers first, those the carrier does not know left out (DOMAIN 6.3). */
  readonly identifiers: readonly string[]
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

export interface BatchReport {
  /** Same length and order as the batch. */
  readonly outcomes: readonly RecordOutcome[]
  /** Every parcel whose answers may have changed, those that were joined away included. */
  readonly touchedParcels: readonly number[]
  /** How long the transaction took, its commit included. */
  readonly durationMs: number
}

export interface MissedPush {
  readonly parcelId: number
  readonly eventAtMs: number
  readonly foundAtMs: number
}

/** The verbs that write: plain data in and out, so the same value runs in-process or on a thread of its own (ARCHITECTURE). */
export interface WriteSide {
  /** One transaction: every observation durable, or (a throw) none. A bad observation is quarantined alone. */
  record(batch: readonly Incoming[]): Promise<BatchReport>
  /** Leases the most overdue watched parcels. */
  claimDuePolls(request: { readonly nowMs: number; readonly limit: number; readonly leaseMs: number }): Promise<readonly DuePoll[]>
  notePollFailure(failure: PollFailure): Promise<void>
  /** Remembers that the carrier answered 404 or 410 for an identifier of a known parcel (DOMAIN 6.3). */
  noteNotPollable(identifier: string): Promise<void>
  /** Remembers that a language was fetched for a parcel: asked again only when a newer entry lacks it (DOMAIN 4.2). */
  noteLanguageAsked(request: { readonly parcelId: number; readonly language: string }): Promise<void>
  /** Watches an identifier, creating its parcel if it is unknown; also revives a stopped one. */
  watch(request: { readonly identifier: string; readonly nowMs: number }): Promise<{ readonly parcelId: number; readonly created: boolean }>
  /** Decides which polled entries whose grace has passed were missed pushes (DOMAIN 6.6). */
  settleMissedPushes(nowMs: number): Promise<readonly MissedPush[]>
  /** The secret the relay signs its own tokens with: made on first use, then kept. */
  tokenKey(): Promise<Uint8Array>
  close(): Promise<void>
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

/** Reads, on connections of their own. */
export interface ReadSide {
  /** By any of its identifiers; null: unknown. */
  findParcel(identifier: string): Promise<ParcelView | null>
  counts(nowMs: number): Promise<StoreCounts>
  /** Throws when the store cannot answer. */
  ping(): Promise<void>
  close(): Promise<void>
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
  fetchAll(request: { readonly identifier: string; readonly language: string; readonly priority: CallPriority; readonly signal?: AbortSignal }): Promise<CarrierAnswer>
  state(): CarrierState
}

/** For `/readyz`, metrics and operators. */
export interface CarrierState {
  readonly credentials: 'unknown' | 'accepted' | 'refused'
  readonly lastAnswerAtMs: number | null
  readonly lastFailure: { readonly reason: UnavailableReason; readonly atMs: number } | null
  readonly budget: { readonly waiting: number; readonly inFlight: number; readonly callsToday: number; readonly callsPerDay: number }
}

/** Where flows report what happened; the composition root turns it into metrics. */
export interface Meter {
  pushReceived(outcome: string, keyIndex: number | null): void
  batchCommitted(size: number, durationMs: number): void
  pollEnded(outcome: string): void
  missedPush(latencyMs: number): void
  merged(result: string, count: number): void
  served(result: 'hit' | 'fetched' | 'stale' | 'not_found' | 'unavailable'): void
}

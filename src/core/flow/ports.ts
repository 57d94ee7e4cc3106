import type { Actor } from '../domain/admin/operator-action.ts'
import type { CallSpender } from '../domain/admin/tally.ts'
import type { AttemptResult } from '../domain/delivery/delivery.ts'
import type { PostRequest } from '../domain/delivery/delivery-request.ts'
import type { Incoming, RecordOutcome } from '../domain/history/recording.ts'
import type { CallPriority, CarrierAnswer, CarrierState } from '../domain/polling/carrier-answer.ts'

/** The wall clock, for stored times, and the monotonic clock, for intervals. They are injected, so that tests control time. */
export interface Clock {
  /** Epoch milliseconds. This clock may jump. */
  now(): number
  /** Milliseconds from an arbitrary start. This clock never goes back. */
  monotonic(): number
}

/** Facts go into the fields, a sentence into the message. Secrets and bodies must not be logged. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** A cache of limited size. It may drop a value at any time, which costs only work. A `Map` is a cache that never drops a value. */
export interface Memory<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): unknown
  delete(key: string): unknown
}

/** Receives reports of what happened. `core/ops/metrics` turns them into metrics. Durations are in milliseconds. */
export interface Meter {
  /** Counts pushes by outcome. `keyIndex`: the index of the key that matched their signatures; null: no key did. */
  pushReceived(outcome: string, keyIndex: number | null, count?: number): void
  /** Counts a refused push under each cause that was found for its refusal. */
  refusalExplained(causes: readonly string[]): void
  /** Counts a commit of `size` observations. */
  batchCommitted(size: number, durationMs: number): void
  pollEnded(outcome: string): void
  /** Counts a missed push. `latencyMs`: from its event to the poll that found it. */
  missedPush(latencyMs: number): void
  deliveryAttempted(
    endpoint: { readonly id: string; readonly name: string },
    outcome: 'accepted' | 'rejected' | 'failed',
    durationMs: number,
  ): void
  merged(result: string, count: number): void
  /** Counts the parcels that a rebuild has compared. */
  rebuilt(counts: { readonly equal: number; readonly differing: number; readonly corrected: number; readonly left: number }): void
  erased(parcels: number): void
  served(result: 'hit' | 'fetched' | 'stale' | 'not_found' | 'unavailable'): void
}

/** Work in the background, a batch at a time. */
export interface Duty {
  /** Only the replica with this role does it; null: every replica does. */
  readonly role: 'janitor' | 'poller' | null
  /** How often it looks for work by itself, in milliseconds; absent: only after orders. */
  readonly everyMs?: number
  /** Whether it also looks after an order of an operator, and when this replica takes roles. */
  readonly afterOrders?: boolean
  /** Whether it waits for room on the disk, because it takes some before it frees any. */
  readonly needsRoom?: boolean
  /** Does a batch. `busy`: there is more. If it rejects, it is called again after a second. */
  readonly pass: () => Promise<'busy' | 'idle'>
  /** What the log says of a pass that failed. */
  readonly failure: string
}

/** The carrier's pull API. Failures of the carrier or the network are returned as values and never thrown. */
export interface Carrier {
  /** Requests the whole history (`all`) of one identifier in one language. */
  fetchAll(request: {
    readonly identifier: string
    readonly language: string
    readonly priority: CallPriority
    readonly spender: CallSpender
    readonly signal?: AbortSignal
    /** Whether no parcel has the identifier. */
    readonly ofNobody?: boolean
  }): Promise<CarrierAnswer>
  state(): CarrierState
}

/**
 * Posts an operator event that is not stored to the address in `operator.url`. `id`: the end of its `webhook-id`. Resolves with whether the address
 * accepted it. False too if there is no address, if another replica delivers to it, or if it has just failed. Rejects if the store cannot be read.
 */
export type PostOperator = (event: Uint8Array, id: string) => Promise<boolean>

/**
 * Encrypts secrets that the store keeps. Each is bound to a purpose, such as the id of an endpoint. `seal` throws if the at-rest key cannot be
 * used.
 */
export interface Vault {
  seal(text: string, purpose: string): Promise<string>
  /** Returns the text. Null: it was sealed for another purpose, or its at-rest key is lost. */
  open(sealed: string, purpose: string): Promise<string | null>
  /** Whether a text was sealed with the first at-rest key, which seals now. */
  isCurrent(sealed: string): boolean
}

/** An encoded answer. It is cached until the facts about its parcel change, or the parcel starts or stops being polled. */
export interface CachedAnswer {
  readonly parcelId: number
  /** The parcel's version when the answer was read from the store. */
  readonly version: number
  readonly body: Buffer
  readonly etag: string
  readonly contentLanguage: string
  /** When a push or poll last reported on the parcel. The header `Age` is computed from it whenever the answer is sent. */
  readonly lastSeenAtMs: number | null
}

export interface AnswerCache {
  /** Returns the cached answer to a question; undefined: there is none, or this process has since changed the parcel. */
  get(key: string): CachedAnswer | undefined
  /** Returns the present position in the sequence of commits. Call it before you read the store for an answer. */
  mark(): bigint
  /** Caches an answer that was read after `mark` was taken. */
  set(key: string, answer: CachedAnswer, mark: bigint): void
}

/** Records observations. The writer may run on another thread. */
export interface Recorder {
  /** Resolves when the observation is durable. Throws `storage_unavailable` if its batch could not be committed. */
  submit(incoming: Incoming): Promise<RecordOutcome>
  /** The number of observations that are not committed yet. */
  pending(): number
  /** Resolves when no observation waits and no commit is running. After this call, failed commits are not tried again. */
  drained(): Promise<void>
}

/** Posts to endpoints. Failures of the receiver or the network are returned as values and never thrown. */
export interface DeliverySender {
  /** Posts once. Never rejects. */
  send(request: PostRequest): Promise<AttemptResult>
  /** Posts once, cheaply enough for thousands of posts per second. `onEnd` is called once, and never before `post` returns. */
  post(request: PostRequest, onEnd: (result: AttemptResult) => void): void
}

/** Signals to readers of the feed that something was committed. */
export interface FeedSignal {
  /** The number of signals so far. Read it before looking at the feed. */
  seen(): number
  /** Resolves when there are more signals than `seen`, after `timeoutMs`, when no more signals come, or when the reader has left. */
  wait(seen: number, timeoutMs: number, left: AbortSignal): Promise<void>
  /** Whether the relay is stopping, so that no more signals come. */
  isClosed(): boolean
}

/** The result of a reload. It names settings as the config file does, and holds no values. */
export interface Reloaded {
  /** Settings that have changed since the last reload and are in effect. */
  readonly changed: readonly string[]
  /** Settings that have changed since the start and need a restart. */
  readonly needsRestart: readonly string[]
  /** Files that could not be used. Their previous content stays in use. */
  readonly problems: readonly string[]
}

/**
 * Reads the config file again and applies it. A reload waits until an earlier reload has ended. Throws `not_reloadable`, with the mistakes
 * in the file under `problems`, and `storage_unavailable`. If it throws, the settings in effect stay as they were.
 */
export type ReloadConfig = (by: Actor) => Promise<Reloaded>

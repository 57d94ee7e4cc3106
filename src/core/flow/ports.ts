import type { CallSpender } from '../domain/admin/tally.ts'
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

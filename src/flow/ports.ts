import type { CallPriority, CarrierAnswer, CarrierState } from '../domain/polling/carrier-answer.ts'
/** The wall clock for what is stored, the monotonic clock for intervals; both in milliseconds. Injected, so that tests control time. */
export interface Clock {
  now(): number
  monotonic(): number
}

/** The log: facts as fields, a sentence as message. Never secrets or bodies. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** A bounded cache: any value may be gone at any time, and losing it costs only work. A `Map` is one that never evicts. */
export interface Memory<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): unknown
  delete(key: string): unknown
}

/** Where flows report what happened; `ops/metrics` turns it into metrics. Durations in milliseconds. */
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

/** The carrier's pull API. Failures of the carrier or the network are values, never thrown. */
export interface Carrier {
  /** Requests `all` for one identifier in one language. */
  fetchAll(request: {
    readonly identifier: string
    readonly language: string
    readonly priority: CallPriority
    readonly signal?: AbortSignal
  }): Promise<CarrierAnswer>
  state(): CarrierState
}

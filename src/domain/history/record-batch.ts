import { hash } from 'node:crypto'
import type { Incoming } from './recording.ts'

/** Observations that are recorded together. */
export interface RecordBatch {
  readonly nowMs: number
  readonly observations: readonly Incoming[]
  /** What each push's body is known by, see `pushDigest`; '' for a poll. */
  readonly digests: readonly string[]
}

export function recordBatch(observations: readonly Incoming[], nowMs: number): RecordBatch {
  return { nowMs, observations, digests: observations.map((one) => (one.kind === 'push' ? pushDigest(one.body) : '')) }
}

/**
 * What a pushed body is known by after it is gone: 12 bytes of its SHA-256, compared only within a parcel (DOMAIN 5.4); each byte is the
 * character of its number.
 */
function pushDigest(body: Uint8Array): string {
  // As text: the platform takes three times as long to make bytes of its own.
  return hash('sha256', body, 'binary').slice(0, 12)
}

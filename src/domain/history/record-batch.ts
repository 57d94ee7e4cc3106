import { hash } from 'node:crypto'
import type { Incoming } from './recording.ts'

/** Observations that are recorded in one transaction. `nowMs`: epoch milliseconds. */
export interface RecordBatch {
  readonly nowMs: number
  readonly observations: readonly Incoming[]
  /** The digest of each push's body, see `pushDigest`; '' for a poll. */
  readonly digests: readonly string[]
}

export function recordBatch(observations: readonly Incoming[], nowMs: number): RecordBatch {
  return { nowMs, observations, digests: observations.map((one) => (one.kind === 'push' ? pushDigest(one.body) : '')) }
}

/**
 * Identifies a pushed body after its bytes are deleted: the first 12 bytes of its SHA-256, as Latin-1 text. It is compared only within a
 * parcel (DOMAIN 5.4).
 */
export function pushDigest(body: Uint8Array): string {
  // Read the digest as text, because returning a buffer takes the platform three times as long.
  return hash('sha256', body, 'binary').slice(0, 12)
}

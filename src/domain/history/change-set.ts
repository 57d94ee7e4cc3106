import type { QueuedDelivery } from '../delivery/dispatch-round.ts'
import type { FeedEvent } from '../delivery/feed-entry.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import type { ExpectedPush } from '../polling/poll.ts'
import type { ScanSample } from '../polling/scan-rate.ts'
import type { QuarantineReason } from './observation.ts'
import type { KeptAnswer } from './parcel-record.ts'
import type { IdentifierState, ParcelJoin, ParcelState } from './parcel-state.ts'
import type { RecordOutcome } from './recording.ts'
import type { KeptSighting } from './sightings.ts'
import type { NextNumbers } from './snapshot.ts'

/** A push that is kept, and what became of it. */
export interface InboxWrite {
  readonly inboxId: number
  readonly push: IncomingPush
  /** See `pushDigest`. */
  readonly digest: string
  readonly state: 'recorded' | 'quarantined' | 'expired'
  readonly reason: QuarantineReason | null
  readonly parcelId: number
}

export interface SightingWrite {
  readonly parcelId: number
  readonly kept: KeptSighting
}

export interface AnswerWrite {
  readonly parcelId: number
  readonly answer: KeptAnswer
  readonly body: Uint8Array
  readonly decidesOrder: boolean
  /** Those that are kept no more. */
  readonly dropped: readonly KeptAnswer[]
}

/** What is written together: the join first, then the sets, each in its order. */
export interface WriteSet {
  readonly join: ParcelJoin | null
  readonly inbox: InboxWrite[]
  /** Numbers of kept pushes that came again. */
  readonly duplicates: number[]
  /** Numbers of pushes that were kept, and prove to be duplicates of others. */
  readonly dropped: number[]
  readonly identifiers: IdentifierState[]
  readonly sightings: SightingWrite[]
  readonly answers: AnswerWrite[]
  readonly feed: FeedEvent[]
  /** Events that no push brought, in the bytes that endpoints are sent. */
  readonly composed: { readonly sequence: number; readonly body: Uint8Array }[]
  readonly deliveries: QueuedDelivery[]
  readonly expected: (ExpectedPush & { readonly dueAtMs: number })[]
  /** Parcels that are new, by their numbers. */
  readonly created: Set<number>
  /** As they are left, by their numbers. */
  readonly parcels: Map<number, ParcelState>
  /** Every status that was the latest of a parcel meanwhile. */
  readonly statuses: Set<string>
  /** Parcels whose poll is over. */
  readonly released: number[]
}

export function emptyWriteSet(join: ParcelJoin | null): WriteSet {
  return {
    join,
    inbox: [],
    duplicates: [],
    dropped: [],
    identifiers: [],
    sightings: [],
    answers: [],
    feed: [],
    composed: [],
    deliveries: [],
    expected: [],
    created: new Set(),
    parcels: new Map(),
    statuses: new Set(),
    released: [],
  }
}

export interface Recorded {
  readonly outcome: RecordOutcome
  /** Every parcel whose answers may have changed, those that were joined away included. */
  readonly touched: readonly number[]
}

/** All that a batch changes, as data. */
export interface ChangeSet {
  /** In their order: each join begins one. */
  readonly writes: readonly WriteSet[]
  /** One for each observation, in their order. */
  readonly recorded: readonly Recorded[]
  /** What comes next after all numbers given here. */
  readonly next: NextNumbers
  /** What observations teach of the carrier: learnt after the commit. */
  readonly scanSamples: readonly ScanSample[]
  /** When entries happened that a poll was the first to bring, epoch milliseconds. */
  readonly foundByPoll: readonly number[]
  /** What observations broke on that were refused for it. */
  readonly failures: readonly unknown[]
}

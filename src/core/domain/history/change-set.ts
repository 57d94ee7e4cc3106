import type { QueuedDelivery } from '../delivery/dispatch-round.ts'
import type { FeedEvent } from '../delivery/feed-entry.ts'
import type { EventValue } from '../delivery/plan-events.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import type { ExpectedPush } from '../polling/poll.ts'
import type { ScanSample } from '../polling/scan-rate.ts'
import type { ErasedName } from './erased.ts'
import type { QuarantineReason } from './observation.ts'
import type { IdentifierState, ParcelJoin, ParcelState } from './parcel-state.ts'
import type { KeptAnswer } from './pull-response.ts'
import type { RecordOutcome } from './recording.ts'
import type { Noted } from './report-notes.ts'
import type { KeptSighting } from './sightings.ts'
import type { NextNumbers } from './snapshot.ts'

/** A push to store in the inbox, with its outcome. */
export interface InboxWrite {
  readonly inboxId: number
  readonly push: IncomingPush
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
  /** The bytes of the answer; null: they contain an erased identifier, so they are not stored. */
  readonly body: Uint8Array | null
  readonly decidesOrder: boolean
  /** The parcel's stored answers to delete, because they no longer influence what is served. */
  readonly dropped: readonly KeptAnswer[]
}

/** What a change has overwritten of a parcel. `sequence`: the first of the change. `value`: see `encodeOverwritten`. */
export interface OverwrittenWrite {
  readonly parcelId: number
  readonly sequence: number
  readonly learntAtMs: number
  readonly value: string
}

/** Changes that are written together: the join first, then the other changes. */
export interface WriteSet {
  readonly join: ParcelJoin | null
  readonly inbox: InboxWrite[]
  /** Inbox ids of stored pushes that arrived again. */
  readonly duplicates: number[]
  /** Inbox ids of stored pushes to delete: duplicates of others, and pushes about an erased parcel. */
  readonly dropped: number[]
  readonly identifiers: IdentifierState[]
  readonly sightings: SightingWrite[]
  readonly answers: AnswerWrite[]
  readonly overwritten: OverwrittenWrite[]
  readonly feed: FeedEvent[]
  /** The bodies of composed events, by the sequence of the event. */
  readonly composed: { readonly sequence: number; readonly body: Uint8Array }[]
  readonly deliveries: QueuedDelivery[]
  readonly expected: (ExpectedPush & { readonly dueAtMs: number })[]
  /** The ids of new parcels. */
  readonly created: Set<number>
  /** The changed parcels in their new state, by id. */
  readonly parcels: Map<number, ParcelState>
  /** Each status that was the latest of a parcel during the batch. */
  readonly statuses: Set<string>
  /** The values of new events, other than the status, that filters of endpoints can name. */
  readonly eventValues: EventValue[]
  /** The ids of the parcels whose poll this batch records. Their leases end. */
  readonly released: number[]
}

/** Returns a write set that contains nothing but the join, if there is one. */
export function emptyWriteSet(join: ParcelJoin | null): WriteSet {
  return {
    join,
    inbox: [],
    duplicates: [],
    dropped: [],
    identifiers: [],
    sightings: [],
    answers: [],
    overwritten: [],
    feed: [],
    composed: [],
    deliveries: [],
    expected: [],
    created: new Set(),
    parcels: new Map(),
    statuses: new Set(),
    eventValues: [],
    released: [],
  }
}

export interface Recorded {
  readonly outcome: RecordOutcome
  /** The ids of all parcels whose served history may have changed, including parcels that were joined to others. */
  readonly touched: readonly number[]
}

export interface ChangeSet {
  /** The write sets, in the order in which to write them. Each join begins a new write set. */
  readonly writes: readonly WriteSet[]
  /** One outcome for each observation, in the order of the batch. */
  readonly recorded: readonly Recorded[]
  /** The ids and sequences at which the next batch begins. */
  readonly next: NextNumbers
  /** Samples of the carrier's scan rate. The model of the carrier learns from them after the commit. */
  readonly scanSamples: readonly ScanSample[]
  /** The event times of the entries that a poll reported before any push did, epoch milliseconds. */
  readonly foundByPoll: readonly number[]
  /** What the carrier's report counts. */
  readonly noted: readonly Noted[]
  /** Identifiers that were found to belong to erased parcels. */
  readonly erased: readonly ErasedName[]
  /** The errors that made the relay refuse observations, for the log. */
  readonly failures: readonly unknown[]
}

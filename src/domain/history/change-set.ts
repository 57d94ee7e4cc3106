import type { QueuedDelivery } from '../delivery/dispatch-round.ts'
import type { EventValue } from '../delivery/event-values.ts'
import type { FeedEvent } from '../delivery/feed-entry.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import type { ExpectedPush } from '../polling/poll.ts'
import type { ScanSample } from '../polling/scan-rate.ts'
import type { ErasedName } from './erased.ts'
import type { KeptAnswer } from './kept-answers.ts'
import type { QuarantineReason } from './observation.ts'
import type { IdentifierState, ParcelJoin, ParcelState } from './parcel-state.ts'
import type { RecordOutcome } from './recording.ts'
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

/** A sighting to store, new or changed. */
export interface SightingWrite {
  readonly parcelId: number
  readonly kept: KeptSighting
}

/** A polled answer to store. */
export interface AnswerWrite {
  readonly parcelId: number
  readonly answer: KeptAnswer
  /** The bytes of the answer; null: they name what was erased, so they are not kept. */
  readonly body: Uint8Array | null
  readonly decidesOrder: boolean
  /** The answers of the parcel to delete. */
  readonly dropped: readonly KeptAnswer[]
}

/** Changes that are written together: the join first, then each list in its order. */
export interface WriteSet {
  readonly join: ParcelJoin | null
  readonly inbox: InboxWrite[]
  /** Inbox ids of stored pushes that arrived again. */
  readonly duplicates: number[]
  /** Inbox ids of stored pushes that were found to be duplicates of others. */
  readonly dropped: number[]
  readonly identifiers: IdentifierState[]
  readonly sightings: SightingWrite[]
  readonly answers: AnswerWrite[]
  readonly feed: FeedEvent[]
  /** The composed events: the bytes that endpoints are sent. */
  readonly composed: { readonly sequence: number; readonly body: Uint8Array }[]
  readonly deliveries: QueuedDelivery[]
  readonly expected: (ExpectedPush & { readonly dueAtMs: number })[]
  /** The ids of new parcels. */
  readonly created: Set<number>
  /** The changed parcels in their new state, by id. */
  readonly parcels: Map<number, ParcelState>
  /** Every latest status that some parcel had during the batch. */
  readonly statuses: Set<string>
  /** The other values of new events that filters compare. */
  readonly eventValues: EventValue[]
  /** The ids of parcels whose poll has ended. */
  readonly released: number[]
}

/** A write set that holds nothing but, if given, a join. */
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
    eventValues: [],
    released: [],
  }
}

/** The outcome of one observation. */
export interface Recorded {
  readonly outcome: RecordOutcome
  /** The ids of all parcels whose answers may have changed, including parcels that were joined to others. */
  readonly touched: readonly number[]
}

/** Everything that a batch changes, as data. */
export interface ChangeSet {
  /** In order. Each join begins a new set. */
  readonly writes: readonly WriteSet[]
  /** One for each observation, in the order of the batch. */
  readonly recorded: readonly Recorded[]
  /** The numbers that follow the last ones used here. */
  readonly next: NextNumbers
  /** Samples of the carrier's scan rate, to be learnt after the commit. */
  readonly scanSamples: readonly ScanSample[]
  /** The event times, epoch milliseconds, of entries that a poll reported first. */
  readonly foundByPoll: readonly number[]
  /** Identifiers that were found to belong to erased parcels. */
  readonly erased: readonly ErasedName[]
  /** The errors because of which observations were refused. */
  readonly failures: readonly unknown[]
}

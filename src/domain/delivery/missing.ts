import { type Audience, audienceOf, isInAudience } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import { endpointWants } from './endpoint.ts'
import type { EndpointState } from './endpoint-state.ts'
import type { FeedEntry } from './feed-entry.ts'
import { relayedEventOf } from './plan-deliveries.ts'

/** Selects among the events that an endpoint never received. All conditions must be true. */
export interface MissingSelection {
  readonly fromSequence: number
  readonly toSequence: number
  /** Recorded at this time (epoch milliseconds) or later. */
  readonly fromMs: number
  /** Recorded before this time. */
  readonly toMs: number
  /** Null: any. */
  readonly parcelId: number | null
}

/** A place in the feed: a sequence, or the time at which an event was recorded, epoch milliseconds. */
export type Place = { readonly sequence: number } | { readonly atMs: number }

type Bounds = Omit<MissingSelection, 'parcelId'>

/** The bounds of a selection. Null: none. */
export function boundsOf(since: Place | null, until: Place | null): Bounds {
  const sequenceOf = (place: Place | null) => (place !== null && 'sequence' in place ? place.sequence : null)
  const timeOf = (place: Place | null) => (place !== null && 'atMs' in place ? place.atMs : null)
  return {
    fromSequence: sequenceOf(since) ?? 0,
    toSequence: sequenceOf(until) ?? Number.MAX_SAFE_INTEGER,
    fromMs: timeOf(since) ?? 0,
    toMs: timeOf(until) ?? Number.MAX_SAFE_INTEGER,
  }
}

/** A selection within bounds. `sequence`: only the event of this sequence; null: any. */
export function selectMissing(
  { sequence, ...bounds }: Bounds & { readonly sequence: number | null },
  parcelId: number | null,
): MissingSelection {
  const { fromSequence, toSequence, fromMs, toMs } = bounds
  return {
    fromSequence: Math.max(fromSequence, sequence ?? 0),
    toSequence: Math.min(toSequence, sequence ?? toSequence),
    fromMs,
    toMs,
    parcelId,
  }
}

/** Asks for a part of the events that were told as backfill. */
export interface BackfillQuery {
  /** Leaves out the events of which this endpoint has a delivery; null: leaves out none. */
  readonly endpointId: string | null
  /** Null: any. */
  readonly parcelId: number | null
  /** A sequence; the search begins behind it. */
  readonly after: number
  /** The last sequence to look at. */
  readonly upTo: number
  /** How many events to look at. */
  readonly limit: number
}

export interface BackfillEvents {
  /** In the order of their sequences, with the present content of their entries. */
  readonly events: readonly FeedEntry[]
  /** The sequence behind which the search continues; null: it has ended. */
  readonly next: number | null
}

/** How many events endpoints never received. */
export interface MissingSummary {
  /** Since when they were recorded, epoch milliseconds. */
  readonly sinceMs: number
  /** The endpoints that miss any. The one that misses most comes first. */
  readonly endpoints: readonly MissingAt[]
  /** Whether there may be more, because the search has stopped at its bound. */
  readonly more: boolean
  /** The resends that are under way already. */
  readonly resends: readonly Resend[]
}

/** Events that an endpoint never received are being queued for it. */
export interface Resend {
  readonly endpointId: string
  readonly name: string
  /** The job that queues them; null: somebody waits for them at a replica. */
  readonly jobId: number | null
  /** How many it has queued so far. */
  readonly queued: number
}

/** How many events an endpoint never received. */
export interface MissingAt {
  readonly endpointId: string
  readonly name: string
  readonly count: number
}

/** Events to queue for an endpoint that never received them, with the bodies that it is sent. */
export interface QueuedMissing {
  readonly endpointId: string
  readonly events: readonly { readonly parcelId: number; readonly sequence: number; readonly body: Uint8Array }[]
  readonly nowMs: number
}

/** An event that an endpoint never received, with the time at which it was recorded. */
export interface MissingEvent extends FeedEntry {
  /** Epoch milliseconds. */
  readonly recordedAtMs: number
}

/**
 * The event, if an endpoint never received it but would have done so if its `backfill` had been on since it began (DOMAIN 6.6); null: it
 * received the entry, or did not want it. An endpoint that received the entry in another event, such as a later push, has received it.
 *
 * Whether the endpoint was queued a delivery of this very event must be looked up in the store.
 */
export function missingOf(state: EndpointState, event: FeedEntry, selection: MissingSelection): MissingEvent | null {
  const { entry, sequence } = event
  const audience = audienceOf(entry.members)
  const recordedAtMs = recordedAsBackfill(entry, audience)
  if (recordedAtMs === null || audience.kind !== 'backfill' || audience.at !== sequence) return null
  const { fromSequence, toSequence, fromMs, toMs } = selection
  const isSelected = sequence >= fromSequence && sequence <= toSequence && recordedAtMs >= fromMs && recordedAtMs < toMs
  if (!isSelected || sequence < state.firstSequence || isInAudience(audience, state.backfilled)) return null
  return endpointWants({ ...state.endpoint, backfill: true }, relayedEventOf(event)) ? { ...event, recordedAtMs } : null
}

/** When the relay learnt of an entry that it has reported as backfill; null: it is not known. */
function recordedAsBackfill({ members }: Entry, audience: Audience): number | null {
  const told = members.find((kept) => kept.audience.kind === 'backfill' && audience.kind === 'backfill' && kept.audience.at === audience.at)
  return told?.learntAtMs ?? null
}

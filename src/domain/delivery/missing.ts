import { type Audience, audienceOf, isInAudience } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import { passesFilters } from './endpoint.ts'
import type { EndpointState } from './endpoint-state.ts'
import type { FeedEntry } from './feed-entry.ts'
import { relayedEventOf } from './plan-deliveries.ts'

/** Selects among the events that an endpoint never received. An event is selected if it meets all these conditions. */
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

/** A position in the feed: a sequence, or the time at which an event was recorded, epoch milliseconds. */
export type Place = { readonly sequence: number } | { readonly atMs: number }

type Bounds = Omit<MissingSelection, 'parcelId'>

/** Turns two positions in the feed into bounds; null: no bound. `since` is inclusive. `until` is inclusive as a sequence, exclusive as a time. */
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

/** Makes a selection within bounds. `sequence`: select only the event with this sequence; null: any. `parcelId` null: any parcel. */
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

/** Selects events that the feed reported as backfill (DOMAIN 6.6). */
export interface BackfillQuery {
  /** Leaves out events that have a delivery to this endpoint; null: leaves out no events. */
  readonly endpointId: string | null
  /** Null: any. */
  readonly parcelId: number | null
  /** The search looks at sequences after this one. */
  readonly after: number
  /** The last sequence to look at. */
  readonly upTo: number
  readonly limit: number
}

export interface BackfillEvents {
  /** In the order of their sequences, with the present content of their entries. */
  readonly events: readonly FeedEntry[]
  /** The search continues after this sequence; null: the search has ended. */
  readonly next: number | null
}

/** How many events endpoints never received. */
export interface MissingSummary {
  /** Only events that were recorded at this time or later count, epoch milliseconds. */
  readonly sinceMs: number
  /** The endpoints that miss events, the one with the most missing events first. */
  readonly endpoints: readonly MissingAt[]
  /** Whether more events may be missing, because the search stopped at its limit. */
  readonly more: boolean
  readonly resends: readonly Resend[]
}

/** A running resend, which queues the events that an endpoint never received. */
export interface Resend {
  readonly endpointId: string
  readonly name: string
  /** The job that queues the events; null: a request queues them, and its sender waits for the result. */
  readonly jobId: number | null
  readonly queued: number
}

export interface MissingAt {
  readonly endpointId: string
  readonly name: string
  readonly count: number
}

/** Events to queue for an endpoint that never received them. */
export interface QueuedMissing {
  readonly endpointId: string
  readonly events: readonly { readonly parcelId: number; readonly sequence: number; readonly body: Uint8Array }[]
  readonly nowMs: number
}

/** An event that an endpoint never received. */
export interface MissingEvent extends FeedEntry {
  /** Epoch milliseconds. */
  readonly recordedAtMs: number
}

/**
 * Returns the event if the endpoint lacks its entry only because the setting `backfill` was off (DOMAIN 6.6). Returns null if the event is not
 * selected, is older than the endpoint, or is excluded by a filter. Also returns null if the endpoint was sent the entry in another event, such
 * as a later push.
 *
 * An earlier resend may have queued this event for the endpoint. The caller must check that in the store.
 */
export function missingOf(state: EndpointState, event: FeedEntry, selection: MissingSelection): MissingEvent | null {
  const { entry, sequence } = event
  const audience = audienceOf(entry.members)
  const recordedAtMs = recordedAsBackfill(entry, audience)
  if (recordedAtMs === null || audience.kind !== 'backfill' || audience.tellings.at(-1)?.at !== sequence) return null
  const { fromSequence, toSequence, fromMs, toMs } = selection
  const isSelected = sequence >= fromSequence && sequence <= toSequence && recordedAtMs >= fromMs && recordedAtMs < toMs
  if (!isSelected || sequence < state.firstSequence || isInAudience(audience, state)) return null
  return passesFilters(state.endpoint, relayedEventOf(event)) ? { ...event, recordedAtMs } : null
}

/** Returns when the relay recorded the sighting that it reported as backfill, epoch milliseconds; null: not known. */
function recordedAsBackfill({ members }: Entry, audience: Audience): number | null {
  const lastOf = (of: Audience) => (of.kind === 'backfill' ? of.tellings.at(-1)?.at : undefined)
  const told = members.find((kept) => lastOf(kept.audience) !== undefined && lastOf(kept.audience) === lastOf(audience))
  return told?.learntAtMs ?? null
}

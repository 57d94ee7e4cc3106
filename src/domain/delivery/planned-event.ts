import { audienceOf, audienceOfEvent, uniteAudiences } from '../history/audience.ts'
import type { EntryChange } from '../history/changes.ts'
import type { Entry } from '../history/history.ts'
import type { ParcelState } from '../history/parcel-state.ts'
import type { KeptSighting } from '../history/sightings.ts'
import type { FeedEvent, Payload } from './feed-entry.ts'
import { type FindPushes, firstOf, type ObservationSource, payloadOfKnownEntry, payloadOfNewEntry } from './payload.ts'

/** An event of the feed, and what endpoints are sent for it; null: nothing. */
export interface FeedAddition {
  readonly event: FeedEvent
  readonly entry: Entry
  readonly payload: Payload | null
  /** The sighting that it reports, as it is from then on. */
  readonly reported: KeptSighting | null
}

export interface EventPlanContext {
  readonly changes: readonly EntryChange[]
  /** Every entry that may be owed to somebody now, changed or not. */
  readonly entries: readonly Entry[]
  readonly parcel: Pick<ParcelState, 'parcelId' | 'watchedAtMs' | 'firstPushedAtMs'>
  readonly source: ObservationSource
  readonly findPushes: FindPushes
  readonly nextSequence: () => number
}

/**
 * What the feed says of what was learnt: the changes, oldest entry first, then entries that endpoints are owed though nothing of them
 * changed. Whom an entry is owed to is decided by whom its sightings were reported to, and by nothing that may have moved since (DOMAIN 6.6).
 */
export function planEvents(context: EventPlanContext): readonly FeedAddition[] {
  const planned: FeedAddition[] = []
  for (const change of context.changes.toSorted((a, b) => a.entry.sequence - b.entry.sequence)) {
    planned.push(isOwed(change.entry) ? planReport(context, change) : planChange(context, change))
  }
  if (context.entries.length === context.changes.length) return planned
  const changed = new Set(context.changes.map(({ entry }) => entry))
  const owed = context.entries.filter((entry) => !changed.has(entry) && isOwed(entry))
  for (const entry of owed.sort((a, b) => a.sequence - b.sequence)) {
    const kind = audienceOf(entry.members).kind === 'nobody' ? 'split' : 'update'
    planned.push(planReport(context, { kind, entry }))
  }
  return planned
}

/** Whether somebody was not told of an entry and is owed it: everybody is owed what a push brought, and what was told to nobody yet. */
function isOwed({ members }: Entry): boolean {
  const { kind } = audienceOf(members)
  if (kind === 'nobody' || kind === 'all') return kind === 'nobody'
  return members.some(({ sighting }) => sighting.source === 'push')
}

function planChange({ parcel, nextSequence }: EventPlanContext, { kind, entry }: EntryChange): FeedAddition {
  const event = { sequence: nextSequence(), kind, parcelId: parcel.parcelId, entry: entry.sequence, carries: null }
  return { event, entry, payload: null, reported: null }
}

function planReport({ parcel, source, findPushes, nextSequence }: EventPlanContext, { kind, entry }: EntryChange): FeedAddition {
  const isNew = kind === 'entry'
  const { payload, sighting } = isNew
    ? { payload: payloadOfNewEntry(source), sighting: firstOf(entry) }
    : payloadOfKnownEntry({ entry, source, findPushes })
  const sequence = isNew ? entry.sequence : nextSequence()
  const earlierAudience = audienceOf(entry.members)
  const backfill = payload.kind === 'composed' && isBackfill(entry, parcel)
  const carries = payload.kind === 'push' ? { kind: payload.kind, inboxId: payload.inboxId } : { kind: payload.kind, backfill }
  return {
    event: { sequence, kind, parcelId: parcel.parcelId, entry: sighting.sequence, carries: { ...carries, earlierAudience } },
    entry,
    payload,
    reported: { ...sighting, audience: uniteAudiences(sighting.audience, audienceOfEvent(earlierAudience, { sequence, backfill })) },
  }
}

/**
 * Whether an entry that nobody was told of yet, and only polls have brought, happened before the relay knew the parcel: before it was
 * watched, and before the earliest event a push brought (DOMAIN 6.6).
 */
function isBackfill(entry: Entry, parcel: Pick<ParcelState, 'watchedAtMs' | 'firstPushedAtMs'>): boolean {
  if (entry.members.some((kept) => kept.sighting.source === 'push')) return false
  const knownSinceMs = Math.min(parcel.watchedAtMs ?? Number.POSITIVE_INFINITY, parcel.firstPushedAtMs ?? Number.POSITIVE_INFINITY)
  return entry.atMs < knownSinceMs
}

import { audienceOf, audienceOfEvent, uniteAudiences } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import type { PollObservation, PushObservation } from '../history/observation.ts'
import type { ParcelState } from '../history/parcel-state.ts'
import { type KeptSighting, sightingId, sightingsOf } from '../history/sightings.ts'
import type { KeptBody } from '../history/snapshot.ts'
import { parseWebhookEvent } from '../ingest/parse-push.ts'
import type { FeedEvent, Payload } from './feed-entry.ts'

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

/** What brought an entry, and where the bytes of a push are kept. */
export type ObservationSource =
  | { readonly kind: 'push'; readonly observation: PushObservation; readonly inboxId: number }
  | { readonly kind: 'poll'; readonly observation: PollObservation }

/** What an observation makes of an entry that it is the first to report. */
function payloadOfNewEntry(source: ObservationSource): Payload {
  if (source.kind === 'push') {
    return { kind: 'push', inboxId: source.inboxId, distributionType: source.observation.sighting.distributionType ?? '' }
  }
  return composedFrom(source)
}

function composedFrom({ observation }: ObservationSource): Payload {
  if (observation.kind === 'push') {
    return { kind: 'composed', trackingIds: observation.trackingIds, distributionType: observation.sighting.distributionType ?? '' }
  }
  const { trackingIds, asked, distributionType } = observation
  return { kind: 'composed', trackingIds: trackingIds.length === 0 ? [asked] : trackingIds, distributionType: distributionType ?? '' }
}

/** The numbers that a parcel's pushes are kept under, the earliest of equal ones, by what they say. */
export type FindPushes = () => ReadonlyMap<string, number>

export interface PayloadRequest {
  readonly entry: Entry
  /** What showed that endpoints are owed the entry. */
  readonly source: ObservationSource
  readonly findPushes: FindPushes
}

export interface PayloadSighting {
  readonly payload: Payload
  /** The sighting of the entry that it reports. */
  readonly sighting: KeptSighting
}

/** What is sent for an entry that was reported before: its own push if its bytes are kept, the earliest of several. */
function payloadOfKnownEntry({ entry, source, findPushes }: PayloadRequest): PayloadSighting {
  const pushes = entry.members.filter(({ sighting }) => sighting.source === 'push').sort((a, b) => a.sequence - b.sequence)
  const [first] = pushes
  if (first === undefined) return { payload: composedFrom(source), sighting: firstOf(entry) }
  // Most often it is the push that is being recorded.
  if (pushes.length === 1 && isOf(source, first)) return { payload: payloadOfNewEntry(source), sighting: first }
  const found = findPushes()
  for (const sighting of pushes) {
    const inboxId = found.get(sightingId(sighting))
    if (inboxId === undefined) continue
    return { payload: { kind: 'push', inboxId, distributionType: sighting.sighting.distributionType ?? '' }, sighting }
  }
  return { payload: composedFrom(source), sighting: first }
}

/** The sighting that an entry is known by. */
function firstOf({ members, sequence }: Entry): KeptSighting {
  const first = members.find((kept) => kept.sequence === sequence)
  if (first === undefined) throw new Error('an entry is known by the sequence of none of its sightings')
  return first
}

function isOf({ kind, observation }: ObservationSource, kept: KeptSighting): boolean {
  return kind === 'push' && sightingsOf(observation).some((listed) => sightingId(listed) === sightingId(kept))
}

/** The numbers of kept pushes by what they say; bodies that are no event any more say nothing. */
export function indexPushes(bodies: readonly KeptBody[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (const { inboxId, body } of bodies) {
    const reading = parseWebhookEvent(body, null)
    const [listed] = reading.ok ? sightingsOf(reading.observation) : []
    if (listed === undefined) continue
    const id = sightingId(listed)
    found.set(id, Math.min(inboxId, found.get(id) ?? inboxId))
  }
  return found
}

/** What an observation changed about one entry; `entry` is how it stands now (CONTRACT, the feed). */
export interface EntryChange {
  /**
   * `entry`: new. `update`: served otherwise than before. `united`: was two or more, or parts of them. `split`: was part of another, and what
   * that other was known by is not in it.
   */
  readonly kind: 'entry' | 'update' | 'united' | 'split'
  readonly entry: Entry
}

/** What changed between two derivations of the same groups, the later one holding every sighting of the earlier. */
export function diffEntries(before: readonly Entry[], after: readonly Entry[]): readonly EntryChange[] {
  if (before.length === 0) return after.map((entry) => ({ kind: 'entry', entry }))
  const formerOf = new Map(before.flatMap((entry) => entry.members.map((kept) => [sightingId(kept), entry] as const)))
  return after.flatMap((entry): EntryChange[] => {
    const formers = new Set(entry.members.flatMap((kept) => formerOf.get(sightingId(kept)) ?? []))
    const [former] = formers
    if (former === undefined) return [{ kind: 'entry', entry }]
    if (formers.size > 1) return [{ kind: 'united', entry }]
    // Whoever was told of the former knows it by its first sighting: what holds that one goes on, anything else is new to them.
    if (!entry.members.some((kept) => kept.sequence === former.sequence)) return [{ kind: 'split', entry }]
    return sameMembers(former, entry) || sameValue(former, entry) ? [] : [{ kind: 'update', entry }]
  })
}

/** An entry is a function of its members: nothing else need be looked at. */
function sameMembers(a: Entry, b: Entry): boolean {
  return a.members.length === b.members.length && a.members.every((kept, at) => kept === b.members[at])
}

function sameValue(a: Entry, b: Entry): boolean {
  return servedValue(a) === servedValue(b)
}

/** Everything of an entry that an answer can show. */
function servedValue(entry: Entry): string {
  const { eventTimestamp, location, displayToConsumer, extra } = entry
  const texts = Object.entries(entry.texts).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([eventTimestamp, location, displayToConsumer, texts, extra])
}

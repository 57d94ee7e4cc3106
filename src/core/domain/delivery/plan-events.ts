import { type Audience, audienceOf, audienceOfEvent, type Backfill, isInAudience, isTold, uniteAudiences } from '../history/audience.ts'
import type { Entry, EntryChange } from '../history/history.ts'
import type { ObservationSource } from '../history/observation.ts'
import { filterableLabels, type OrderContext } from '../history/order-context.ts'
import type { ParcelState } from '../history/parcel-state.ts'
import { type KeptSighting, sightingId, sightingsOf } from '../history/sightings.ts'
import type { KeptBody, Subscriber } from '../history/snapshot.ts'
import { parseWebhookEvent } from '../ingest/parse-push.ts'
import { encodeEvent } from './delivery-request.ts'
import type { QueuedDelivery } from './dispatch-round.ts'
import { type RelayedEvent, takes } from './endpoint-state.ts'
import type { FeedEvent, Payload } from './feed-entry.ts'

/** An event to add to the feed, with the body for endpoints. `payload` null: endpoints are not sent the event. */
export interface FeedAddition {
  readonly event: FeedEvent
  readonly entry: Entry
  readonly payload: Payload | null
  /** The sighting that the event reports, with its new audience, which must be saved; null: endpoints are not sent the event. */
  readonly reported: KeptSighting | null
}

export interface EventPlanContext {
  readonly changes: readonly EntryChange[]
  /** All entries that may have to be sent to endpoints, changed or not. */
  readonly entries: readonly Entry[]
  readonly parcel: Pick<ParcelState, 'parcelId' | 'watchedAtMs' | 'firstPushedAtMs'>
  readonly source: ObservationSource
  readonly findPushes: FindPushes
  readonly nextSequence: () => number
  /** When the relay learnt of the observation, epoch milliseconds. */
  readonly learntAtMs: number
  /** Backfill that is older than this when the relay learns of it goes only to endpoints with `backfill`. */
  readonly recentMs: number
}

/**
 * Plans the events that an observation adds to the feed: first those about changed entries, then those about unchanged entries that must
 * still be sent to endpoints. Both are ordered by the sequences of the entries. Whether an entry must still be sent depends on the sources
 * and audiences that are stored with its sightings. It does not depend on settings, which may change later (DOMAIN 6.6).
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

/**
 * Whether an entry must still be sent to endpoints. An entry that nobody was sent goes to all of them. An entry that only some endpoints were
 * sent goes to the others as soon as a push reports it.
 */
function isOwed({ members }: Entry): boolean {
  const { kind } = audienceOf(members)
  if (kind === 'nobody' || kind === 'all') return kind === 'nobody'
  return members.some(({ sighting }) => sighting.source === 'push')
}

function planChange({ parcel, nextSequence }: EventPlanContext, { kind, entry }: EntryChange): FeedAddition {
  const event = { sequence: nextSequence(), kind, parcelId: parcel.parcelId, entry: entry.sequence, payloadRef: null }
  return { event, entry, payload: null, reported: null }
}

function planReport(context: EventPlanContext, { kind, entry }: EntryChange): FeedAddition {
  const { parcel, source, findPushes, nextSequence } = context
  const isNew = kind === 'entry'
  const { payload, sighting } = isNew
    ? { payload: payloadOfNewEntry(source), sighting: firstOf(entry) }
    : payloadOfKnownEntry({ entry, source, findPushes })
  const sequence = isNew ? entry.sequence : nextSequence()
  const earlierAudience = audienceOf(entry.members)
  const backfill = payload.kind === 'composed' ? backfillOf(entry, context) : null
  const payloadRef = payload.kind === 'push' ? { kind: payload.kind, inboxId: payload.inboxId } : { kind: payload.kind, backfill }
  return {
    event: { sequence, kind, parcelId: parcel.parcelId, entry: sighting.sequence, payloadRef: { ...payloadRef, earlierAudience } },
    entry,
    payload,
    reported: { ...sighting, audience: uniteAudiences(sighting.audience, audienceOfEvent(earlierAudience, { sequence, backfill })) },
  }
}

/**
 * Returns null if an entry is no backfill. It is backfill if only polls have reported it, and it is older than the relay's knowledge of the
 * parcel. The relay has known a parcel since it began to watch it, or since the time of the earliest pushed event, whichever is earlier (DOMAIN
 * 6.6). Its time says which endpoints had begun when it happened (DOMAIN 7.1).
 */
function backfillOf({ members, atMs }: Entry, { parcel, learntAtMs, recentMs }: EventPlanContext): Backfill | null {
  if (members.some((kept) => kept.sighting.source === 'push')) return null
  const knownSinceMs = Math.min(parcel.watchedAtMs ?? Number.POSITIVE_INFINITY, parcel.firstPushedAtMs ?? Number.POSITIVE_INFINITY)
  if (atMs >= knownSinceMs) return null
  return { beganBy: learntAtMs - atMs > recentMs ? null : Math.min(atMs, learntAtMs) }
}

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

/** Finds the pushes of a parcel whose bytes are kept. Maps each `sightingId` to the inbox id of the earliest push that reported it. */
export type FindPushes = () => ReadonlyMap<string, number>

/** An entry that is not new but must be sent to endpoints, with the observation that is being recorded. */
export interface PayloadRequest {
  readonly entry: Entry
  readonly source: ObservationSource
  readonly findPushes: FindPushes
}

export interface PayloadSighting {
  readonly payload: Payload
  readonly sighting: KeptSighting
}

/** Chooses the body for an entry that is not new: the earliest push of the entry whose bytes are kept, or else a composed event. */
function payloadOfKnownEntry({ entry, source, findPushes }: PayloadRequest): PayloadSighting {
  const pushes = entry.members.filter(({ sighting }) => sighting.source === 'push').sort((a, b) => a.sequence - b.sequence)
  const [first] = pushes
  if (first === undefined) return { payload: composedFrom(source), sighting: firstOf(entry) }
  // Usually the only push of the entry is the one that is being recorded. Then no search is needed.
  if (pushes.length === 1 && isOf(source, first)) return { payload: payloadOfNewEntry(source), sighting: first }
  const found = findPushes()
  for (const sighting of pushes) {
    const inboxId = found.get(sightingId(sighting))
    if (inboxId === undefined) continue
    return { payload: { kind: 'push', inboxId, distributionType: sighting.sighting.distributionType ?? '' }, sighting }
  }
  return { payload: composedFrom(source), sighting: first }
}

/** Returns the sighting whose sequence is the sequence of the entry. */
function firstOf({ members, sequence }: Entry): KeptSighting {
  const first = members.find((kept) => kept.sequence === sequence)
  if (first === undefined) throw new Error('no sighting of an entry has the sequence of the entry')
  return first
}

function isOf({ kind, observation }: ObservationSource, kept: KeptSighting): boolean {
  return kind === 'push' && sightingsOf(observation).some((listed) => sightingId(listed) === sightingId(kept))
}

/** Maps the `sightingId` of each kept push to its inbox id. Leaves out bodies that this version cannot parse as events. */
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

/** The members of events, apart from the status, that filters compare with a list of values. */
export type FilteredMember = 'detailedStatus' | 'distributionType'

export interface EventValue {
  readonly member: FilteredMember
  readonly value: string
}

/** The greatest length of a value in a filter. Longer values are left out, because no filter can name them. */
const CHARS_MAX = 200

/** Returns the values of an event that filters can name. Returns none if endpoints are not sent the event. */
export function eventValuesOf({ entry, payload }: Pick<FeedAddition, 'entry' | 'payload'>): readonly EventValue[] {
  if (payload === null) return []
  const values: readonly EventValue[] = [
    { member: 'detailedStatus', value: entry.detailedStatus },
    { member: 'distributionType', value: payload.distributionType },
  ]
  return values.filter(({ value }) => value !== '' && value.length <= CHARS_MAX)
}

interface DeliverableEvent {
  /** The event's position in the feed. Each endpoint gets the events of a parcel in this order. */
  readonly sequence: number
  readonly entry: Entry
  readonly parcelId: number
  readonly payload: Payload
  /** Null: the event reports no backfill (DOMAIN 6.6). */
  readonly backfill: Backfill | null
  /** An earlier event has told these endpoints of this entry, so they do not get this event. */
  readonly earlierAudience: Audience
  /** What is said of the order of the parcel. */
  readonly order: OrderContext
  readonly nowMs: number
}

interface PlannedDeliveries {
  /** The body that the relay composed; null: the body is the push as received, or there are no deliveries. */
  readonly composed: Uint8Array | null
  readonly deliveries: readonly QueuedDelivery[]
}

/** Plans a delivery to each subscriber that wants the event, unless an earlier event has told it of the entry. */
export function planDeliveries(subscribers: readonly Subscriber[], event: DeliverableEvent): PlannedDeliveries {
  const { entry, parcelId, payload, sequence, nowMs, earlierAudience, backfill } = event
  const offered = relayedEventOf(event)
  const takers = subscribers.filter(
    (subscriber) =>
      takes(subscriber.endpoint, 'entry', offered) &&
      (backfill === null || isTold(subscriber, { at: sequence, ...backfill })) &&
      !isInAudience(earlierAudience, subscriber),
  )
  const inboxId = payload.kind === 'push' ? payload.inboxId : null
  const toldIn = earlierAudience.kind === 'backfill' ? (earlierAudience.tellings.at(-1)?.at ?? null) : null
  return {
    composed: takers.length > 0 && payload.kind === 'composed' ? encodeEvent({ entry, ...payload }) : null,
    deliveries: takers.map(({ endpoint }) => ({ endpointId: endpoint.id, parcelId, sequence, inboxId, toldIn, nowMs })),
  }
}

/** Returns the fields of an event that the filters of endpoints test. */
function relayedEventOf({ entry, payload, order }: Pick<DeliverableEvent, 'entry' | 'payload' | 'order'>): RelayedEvent {
  const { status, detailedStatus, displayToConsumer } = entry
  return { status, detailedStatus, displayToConsumer, distributionType: payload.distributionType, labels: filterableLabels(order) }
}

/** Null: only readers of the feed get this event, and endpoints do not. */
export function deliverableEventOf({ event, entry, payload }: FeedAddition, order: OrderContext, nowMs: number): DeliverableEvent | null {
  const { sequence, parcelId, payloadRef } = event
  if (payloadRef === null || payload === null) return null
  const backfill = payloadRef.kind === 'composed' ? payloadRef.backfill : null
  return { sequence, entry, parcelId, payload, backfill, earlierAudience: payloadRef.earlierAudience, order, nowMs }
}

import { type Audience, type Backfill, noAudience } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import type { OrderContext } from '../history/order-context.ts'
import { type AnswerSource, encodeMembers } from '../history/pull-response.ts'
import type { RawMembers } from '../json-body.ts'
import { compareBytes } from '../text.ts'
import type { WatchdogKind, WatchdogTold } from './watchdog-event.ts'

/** What the body of a delivery is made from: the bytes of a push, or an event that the relay composes from an entry (DOMAIN 7.1). */
export type Payload =
  | { readonly kind: 'push'; readonly inboxId: number; readonly distributionType: string }
  | { readonly kind: 'composed'; readonly trackingIds: readonly string[]; readonly distributionType: string }

export interface FeedEntriesRequest {
  /** The endpoint that catches up. */
  readonly endpointId: string
  readonly after: number
  readonly limit: number
}

/** Consecutive events of the feed, as they are sent to endpoints. */
export interface FeedEntries {
  readonly entries: readonly FeedEntry[]
  readonly news: readonly FeedNews[]
  /** The last sequence that was read. The next read begins after it. */
  readonly next: number
  /** Whether the end of the feed was reached. */
  readonly ended: boolean
}

/** An event of the feed, as it is sent to endpoints: with the content that the entry has now. */
export interface FeedEntry {
  readonly sequence: number
  readonly parcelId: number
  /** All identifiers of the parcel. */
  readonly identifiers: readonly string[]
  readonly entry: Entry
  readonly payload: Payload
  /** Null: it reports no backfill. */
  readonly backfill: Backfill | null
  /** The endpoints to which the entry was sent in an earlier event. They do not get this event. */
  readonly earlierAudience: Audience
  readonly order: OrderContext
}

/** What a watchdog told of a parcel, as it is sent to endpoints: with what is known of the parcel now. */
export interface FeedNews {
  readonly sequence: number
  readonly told: WatchdogTold
  readonly parcel: FeedParcel
}

/** An event of the feed, as it is stored. */
export interface FeedEvent {
  readonly sequence: number
  readonly kind: FeedKind
  readonly parcelId: number
  /**
   * Identifies the subject of the event. If the event goes to endpoints: the sequence of the sighting that it reports. For another event
   * about an entry: the sequence of any sighting of the entry. For an event about the whole parcel: the event's own sequence. For `join`:
   * the id of the parcel that was joined.
   */
  readonly entry: number
  /** A reference to the body, and the endpoints to which the entry was already sent; null: the event does not go to endpoints. */
  readonly payloadRef: (PayloadRef & { readonly earlierAudience: Audience }) | null
}

/** The event of a parcel that retention has deleted. It does not go to endpoints. */
export function retiredEvent(sequence: number, parcelId: number): FeedEvent {
  return { sequence, kind: 'retired', parcelId, entry: sequence, payloadRef: null }
}

/** The event of an erased parcel. It does not go to endpoints. */
export function erasedEvent(sequence: number, parcelId: number): FeedEvent {
  return { sequence, kind: 'erased', parcelId, entry: sequence, payloadRef: null }
}

/** The event of a parcel that has changed as a whole. It does not go to endpoints. */
export function updateEvent(sequence: number, parcelId: number): FeedEvent {
  return { sequence, kind: 'update', parcelId, entry: sequence, payloadRef: null }
}

/** A stored reference to what a body is made from: a push as received, or an entry from which the relay composes an event. */
export type PayloadRef =
  | { readonly kind: 'push'; readonly inboxId: number }
  | { readonly kind: 'composed'; readonly backfill: Backfill | null }

/** The subject of an event at the time of sending. */
export interface PayloadSubject {
  readonly entry: Entry
  /** The parcel that holds the entry now. */
  readonly parcel: FeedParcel
  /** Whether the bytes of the event's push are still kept. */
  readonly hasBody: boolean
}

/** Decides what a body is made from when it is sent. If retention has deleted the bytes of the push, the event is composed. */
export function payloadOf(ref: PayloadRef, { entry, parcel, hasBody }: PayloadSubject): Payload {
  const { trackingIds, identifiers, distributionType } = parcel
  if (ref.kind === 'composed' || !hasBody)
    return { kind: 'composed', trackingIds: trackingIds.length === 0 ? identifiers.slice(0, 1) : trackingIds, distributionType }
  const said = entry.members.find(({ sighting }) => sighting.source === 'push')?.sighting.distributionType
  return { kind: 'push', inboxId: ref.inboxId, distributionType: said || distributionType }
}

/** Consecutive events of the feed, as the API shows them to readers. */
export interface FeedSlice {
  readonly items: readonly FeedItem[]
  /** The last sequence that was read. If its parcel has been deleted, `items` has no item with this sequence. */
  readonly next: number
  /** Whether the end of the feed was reached at that moment. */
  readonly ended: boolean
  /** Events up to this sequence were deleted; 0: no event was deleted. */
  readonly prunedTo: number
  readonly last: number
}

/**
 * The kinds of events in the feed (CONTRACT). `entry`: an entry is new. `update`: an entry changed. `united`: several entries became one.
 * `split`: an entry was split from another. `join`: two parcels became one. `retired`: retention deleted a parcel. `erased`: somebody erased
 * a parcel. `stalled`: a rule of the config found that a parcel does not go on. `recovered`: that is over.
 */
export type FeedKind = 'entry' | 'update' | 'united' | 'split' | 'join' | 'retired' | 'erased' | WatchdogKind

/** A breach of a rule that was told. `checked`: whether the carrier was asked before. */
export interface ToldBreach {
  readonly rule: string
  readonly sinceMs: number
  readonly checked: boolean
  readonly toldAtMs: number
  /** Null: it lasts. */
  readonly endedAtMs: number | null
}

/** What a rule says of a parcel, to tell it. `breach`: the id of the breach. `body` null: no endpoint gets it. */
export interface WatchdogNews {
  readonly kind: WatchdogKind
  readonly parcelId: number
  readonly breach: number
  readonly body: Uint8Array | null
  readonly endpointIds: readonly string[]
  readonly nowMs: number
}

/** The event of a breach. Its entry is the negated id, so that no number of a sighting equals it. Its body is composed from the breach. */
export function watchdogEvent(sequence: number, { kind, parcelId, breach }: WatchdogNews): FeedEvent {
  return { sequence, kind, parcelId, entry: -breach, payloadRef: { kind: 'composed', backfill: null, earlierAudience: noAudience } }
}

/** A parcel as it is now. `entries`: its history, newest first. */
export interface FeedParcel extends AnswerSource {
  /** The parcel's id in the relay. It stays the same until a `join` makes the parcel part of another one. */
  readonly parcelId: number
  readonly identifiers: readonly string[]
  readonly order: OrderContext
}

/** An event of the feed, with the present content of its parcel. So a reader that applies all events in order ends with the present histories. */
export type FeedItem = ParcelEvent | GoneEvent

/** Reports that a parcel is gone. Only its id is left, and no other parcel will get this id. */
interface GoneEvent {
  readonly sequence: number
  readonly kind: 'retired' | 'erased'
  readonly parcelId: number
}

interface ParcelEvent {
  readonly sequence: number
  readonly kind: Exclude<FeedKind, GoneEvent['kind']>
  readonly parcel: FeedParcel
  /** The entry that the event is about, with its present content; null: the event is about the whole parcel. */
  readonly entry: Entry | null
  /** For `join`: the parcel that became part of `parcel`, and its identifiers; null: another kind of event. */
  readonly joined: { readonly parcelId: number; readonly identifiers: readonly string[] } | null
  /** For `stalled` and `recovered`; null: another kind of event, or the breach is no longer known. */
  readonly breach: ToldBreach | null
}

/** Encodes an event as JSON text. Unknown members are appended as text, because their numbers must be printed as they were received. */
export function encodeFeedItem(item: FeedItem): string {
  if ('parcelId' in item) return JSON.stringify({ sequence: item.sequence, kind: item.kind, parcel: { id: String(item.parcelId) } })
  const { sequence, kind, parcel, entry, joined, breach } = item
  const members: [string, string][] = [
    ['sequence', String(sequence)],
    ['kind', JSON.stringify(kind)],
    ['parcel', encodeParcel(parcel)],
    ['entry', entry === null ? 'null' : encodeEntry(entry)],
  ]
  if (kind === 'united' && entry !== null) members.push(['united', JSON.stringify(formerIds(entry))])
  if (joined !== null) {
    members.push(['joined', JSON.stringify({ id: String(joined.parcelId), identifiers: joined.identifiers })])
    members.push(['entries', `[${parcel.entries.map(encodeEntry).join(',')}]`])
  }
  if (breach !== null) {
    const { rule, sinceMs, checked } = breach
    members.push(['watchdog', JSON.stringify({ rule, since: new Date(sinceMs).toISOString(), checked })])
  }
  return objectOf(members)
}

function encodeParcel({ parcelId, identifiers, trackingIds, distributionType, extra, entries, order }: FeedParcel): string {
  const { reference, labels } = order
  // Nothing is said of most orders, so the members are left out then.
  const shownOrder = { ...(reference === null ? {} : { reference }), ...(Object.keys(labels).length === 0 ? {} : { labels }) }
  const known = { id: String(parcelId), identifiers: identifiers.toSorted(compareBytes), trackingIds, distributionType, ...shownOrder }
  const history = entries.map((entry) => entry.sequence)
  return `${JSON.stringify(known).slice(0, -1)},"extra":${encodeExtra(extra)},"history":${JSON.stringify(history)}}`
}

function encodeEntry(entry: Entry): string {
  const { sequence: id, status, detailedStatus, eventTimestamp, location, displayToConsumer } = entry
  const known = { id, status, detailedStatus, eventTimestamp, location, displayToConsumer, texts: shownTexts(entry) }
  return `${JSON.stringify(known).slice(0, -1)},"extra":${encodeExtra(entry.extra)}}`
}

/** Leaves out the texts that consumers may not see (DOMAIN 2.6). */
function shownTexts({ texts, displayToConsumer }: Entry): Entry['texts'] {
  const languages = Object.entries(texts).sort(([a], [b]) => compareBytes(a, b))
  return Object.fromEntries(
    languages.map(([language, { consumer, detailed }]) => [
      language,
      { ...(consumer === undefined || !displayToConsumer ? {} : { consumer }), ...(detailed === undefined ? {} : { detailed }) },
    ]),
  )
}

/** Lists the sequences of the entry's other sightings. Earlier events may have shown parts of the entry under these ids. */
function formerIds({ members, sequence }: Entry): readonly number[] {
  return members.flatMap((kept) => (kept.sequence === sequence ? [] : [kept.sequence])).sort((a, b) => a - b)
}

function encodeExtra(extra: RawMembers): string {
  return `{${encodeMembers(extra).slice(1)}}`
}

function objectOf(members: RawMembers): string {
  return `{${encodeMembers(members).slice(1)}}`
}

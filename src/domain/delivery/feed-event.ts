import type { Entry } from '../history/history.ts'
import { type AnswerSource, encodeMembers } from '../history/pull-response.ts'
import type { RawMembers } from '../json-body.ts'
import { compareBytes } from '../text.ts'

/**
 * The kinds of events in the feed (CONTRACT). `entry`: an entry is new. `update`: an entry changed. `united`: several entries became one.
 * `split`: an entry was split from another. `join`: two parcels became one. `retired`: retention deleted a parcel. `erased`: somebody erased
 * a parcel.
 */
export type FeedKind = 'entry' | 'update' | 'united' | 'split' | 'join' | 'retired' | 'erased'

/** A parcel as it is now. `entries`: its history, newest first. */
export interface FeedParcel extends AnswerSource {
  /** The parcel's id in the relay. It stays the same until a `join` makes the parcel part of another one. */
  readonly parcelId: number
  readonly identifiers: readonly string[]
}

/** An event of the feed, with the present content of its parcel. So a reader that applies all events in order ends with the present histories. */
export type FeedItem = ParcelEvent | GoneEvent

/** Reports that a parcel is gone. Only its id is left, and no other parcel will get this id. */
export interface GoneEvent {
  readonly sequence: number
  readonly kind: 'retired' | 'erased'
  readonly parcelId: number
}

export interface ParcelEvent {
  readonly sequence: number
  readonly kind: Exclude<FeedKind, GoneEvent['kind']>
  readonly parcel: FeedParcel
  /** The entry that the event is about, with its present content; null: the event is about the whole parcel. */
  readonly entry: Entry | null
  /** For `join`: the parcel that became part of `parcel`, and its identifiers; null: another kind of event. */
  readonly joined: { readonly parcelId: number; readonly identifiers: readonly string[] } | null
}

/** Encodes an event as JSON text. Unknown members are appended as text, because their numbers must be printed as they were received. */
export function encodeFeedItem(item: FeedItem): string {
  if ('parcelId' in item) return JSON.stringify({ sequence: item.sequence, kind: item.kind, parcel: { id: String(item.parcelId) } })
  const { sequence, kind, parcel, entry, joined } = item
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
  return objectOf(members)
}

function encodeParcel({ parcelId, identifiers, trackingIds, distributionType, extra, entries }: FeedParcel): string {
  const known = { id: String(parcelId), identifiers: identifiers.toSorted(compareBytes), trackingIds, distributionType }
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

import type { RawMembers } from '../json-body.ts'
import { answersOf, type BatchState, findIdentifier, orderOf, type ParcelDraft } from './batch-state.ts'
import { groupOf, type PollObservation, type PushObservation } from './observation.ts'
import { type IdentifierState, isUnheardOf, type ParcelState } from './parcel-state.ts'
import { headOf, type KeptAnswer, type ParcelHead } from './pull-response.ts'
import { type KeptSighting, listedId, sightingId } from './sightings.ts'
import { secondOf } from './snapshot.ts'

/*
 * Nearly all of what was known of a parcel at a time is still stored: its sightings have the sequences at which the relay learnt of them, and the
 * history is merged from those that it had (DOMAIN 11). What a change overwrites is kept here, and only if it decides what the relay answered.
 */

/** Values of a parcel that a change has overwritten. An absent member: the change overwrote no such value. */
export interface Overwritten {
  /** Polled sightings, by their `listedId`, with the time at which they had been asked for and with their unknown members. */
  readonly sightings?: readonly OverwrittenSightings[]
  /** What the answers to polls said of the whole parcel; null: no poll had been answered. */
  readonly head?: ParcelHead | null
  /** The part of the order answer that may decide something, as `listedId`s. */
  readonly order?: readonly string[]
  /** The identifiers that the parcel did not have. */
  readonly added?: readonly string[]
  /** The identifiers that it had, but not as tracking ids. */
  readonly listed?: readonly string[]
  /** When the carrier had said last that it did not know the parcel, epoch milliseconds. */
  readonly unheardAtMs?: number
  /** What was known before is not known exactly: parcels were joined, a rebuild corrected the parcel, or there was too much to keep. */
  readonly lost?: LostBecause
  /** For a join: a poll was answered about one of the parcels. */
  readonly isPolled?: true
}

/** Why what was known at a time may not be exactly what is told of it now. */
export const APPROXIMATE_BECAUSE = ['join', 'rebuild', 'limit', 'restore', 'upgrade', 'erasure', 'retention'] as const
export type ApproximateBecause = (typeof APPROXIMATE_BECAUSE)[number]

type LostBecause = Extract<ApproximateBecause, 'join' | 'rebuild' | 'limit'>

/** What became of an entry after a time. `confirmed`: it was reported again and is shown as before. */
export interface EntryNews {
  readonly kind: 'new' | 'changed' | 'confirmed'
  /** By which doors it was learnt, in the order in which they brought it. */
  readonly doors: readonly ('push' | 'poll')[]
}

interface OverwrittenSightings {
  readonly askedAtMs: number
  readonly extra: RawMembers
  readonly ids: readonly string[]
}

/** Overwritten values, and when a change overwrote them. */
export interface OverwrittenAt extends Overwritten {
  /** The first sequence of the change. The values held before it. */
  readonly sequence: number
  /** When the relay learnt of the change, epoch milliseconds. */
  readonly learntAtMs: number
}

/** How many changes of a parcel keep what they overwrote. */
export const OVERWRITTEN_MAX = 64
/** What one change may keep, in characters of JSON. */
const OVERWRITTEN_CHARS_MAX = 16_384

/** Null: the change has overwritten nothing. */
export function encodeOverwritten(overwritten: Overwritten): string | null {
  const json = JSON.stringify(overwritten)
  if (json === '{}') return null
  return json.length > OVERWRITTEN_CHARS_MAX ? JSON.stringify({ lost: 'limit' } satisfies Overwritten) : json
}

/**
 * Returns the values of sightings that a poll overwrites and that decide something: unknown members that change, and the place of a sighting in the
 * order of asking, which decides between sightings that differ. So a repeated answer overwrites nothing.
 *
 * An older history has fewer sightings. It is right all the same, because each pair of sightings that differ keeps its order.
 */
function overwrittenSightings(before: readonly KeptSighting[], changed: readonly KeptSighting[]): readonly OverwrittenSightings[] {
  const now = new Map(changed.map((kept) => [sightingId(kept), kept]))
  const polled = before.filter(({ sighting }) => sighting.source === 'poll')
  const replaced = new Map(
    polled.flatMap((kept) => (now.get(sightingId(kept))?.sequence === kept.sequence ? [[kept, now.get(sightingId(kept))]] : [])),
  )
  if (replaced.size === 0) return []
  const lost: KeptSighting[] = []
  for (const group of Map.groupBy(polled, ({ sighting }) => groupOf(sighting)).values()) {
    const isRewritten = group.some((kept) => {
      const by = replaced.get(kept)
      return by !== undefined && !isSameExtra(by, kept)
    })
    // Changed members may make sightings alike that differed, so all of the group stay as they were.
    if (isRewritten) lost.push(...group)
    else lost.push(...group.filter((kept) => replaced.has(kept) && group.some((other) => isOvertaken(kept, other, replaced.has(other)))))
  }
  return gathered(lost)
}

/** Whether a sighting that is asked for anew passes another one that is shown differently. */
function isOvertaken(kept: KeptSighting, other: KeptSighting, isToo: boolean): boolean {
  if (kept === other || other.askedAtMs < kept.askedAtMs || (isToo && other.askedAtMs === kept.askedAtMs)) return false
  return differ(kept, other)
}

/** Whether it matters which of two sightings of an entry was asked for last (DOMAIN 2.5). */
function differ(a: KeptSighting, b: KeptSighting): boolean {
  const [one, other] = [a.sighting, b.sighting]
  if (one.instant.text !== other.instant.text || one.location !== other.location || !isSameExtra(a, b)) return true
  const [shown, otherShown] = [one.displayToConsumer, other.displayToConsumer]
  if (shown !== null && otherShown !== null && shown !== otherShown) return true
  return Object.entries(one.texts).some(([language, { consumer, detailed }]) => {
    const texts = other.texts[language]
    if (texts === undefined) return false
    return isOther(consumer, texts.consumer) || isOther(detailed, texts.detailed)
  })
}

function isOther(one: string | null | undefined, other: string | null | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other
}

function isSameExtra(a: KeptSighting, b: KeptSighting): boolean {
  const [one, other] = [a.sighting.extra, b.sighting.extra]
  return one.length === other.length && JSON.stringify(one) === JSON.stringify(other)
}

function gathered(lost: readonly KeptSighting[]): readonly OverwrittenSightings[] {
  const groups = Map.groupBy(lost, ({ askedAtMs, sighting }) => `${askedAtMs} ${JSON.stringify(sighting.extra)}`)
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    return first === undefined ? [] : [{ askedAtMs: first.askedAtMs, extra: first.sighting.extra, ids: group.map(listedId) }]
  })
}

/**
 * Returns the sightings whose order an order answer may decide. These are all sightings of the seconds in which two entries may have the same
 * instant, now or with fewer sightings.
 */
function tieable(sightings: readonly KeptSighting[]): readonly KeptSighting[] {
  return [...Map.groupBy(sightings, ({ sighting }) => secondOf(sighting.instant.atMs)).values()].filter(mayTie).flat()
}

/** False: the sightings of a second are one entry, and so is every subset of them. */
function mayTie(ofSecond: readonly KeptSighting[]): boolean {
  const [first] = ofSecond
  if (first === undefined || ofSecond.length === 1) return false
  const locations = new Set(ofSecond.flatMap(({ sighting }) => (sighting.location === '' ? [] : sighting.location)))
  return (
    locations.size > 1 ||
    ofSecond.some(({ listing }) => listing !== 0) ||
    ofSecond.some(({ sighting }) => groupOf(sighting) !== groupOf(first.sighting)) ||
    new Set(ofSecond.flatMap(({ sighting }) => (sighting.instant.atMs % 1000 === 0 ? [] : sighting.instant.atMs))).size > 1
  )
}

/** What decides the order of tied sightings before and after a poll, as `listedId`s. Returns null if all known ones keep their order. */
function overwrittenOrder(tied: readonly KeptSighting[], before: readonly string[], after: readonly string[]): readonly string[] | null {
  const known = new Set(tied.map(listedId))
  const was = before.filter((id) => known.has(id))
  const is = after.filter((id) => known.has(id))
  return was.length === is.length && was.every((id, at) => id === is[at]) ? null : was
}

/**
 * Returns what the answers to polls said of the parcel before a poll; undefined: it says the same. `isFirstSeen`: the poll brings the first polled
 * sightings of the parcel. Their sequences tell that no poll was answered before.
 */
function overwrittenHead(before: readonly KeptAnswer[], after: readonly KeptAnswer[], isFirstSeen: boolean): ParcelHead | null | undefined {
  const was = headOf(before)
  if (was === null && isFirstSeen) return undefined
  return JSON.stringify(was) === JSON.stringify(headOf(after)) ? undefined : was
}

/** An observation of a parcel, and the parcel before and after it. */
interface Overwriting {
  readonly observation: PushObservation | PollObservation
  /** The state before the observation. */
  readonly former: ParcelState
  readonly before: ParcelDraft
  readonly after: ParcelDraft
  /** The sightings that were known and loaded: for a push those of its second, for a poll all. */
  readonly known: readonly KeptSighting[]
  readonly changed: readonly KeptSighting[]
  readonly newNames: readonly IdentifierState[]
  readonly isJoined: boolean
}

/** Returns what an observation overwrites of its parcel. Nearly all pushes and most polls overwrite nothing. */
export function overwrittenBy(batch: BatchState, seen: Overwriting): Overwritten {
  const { former, isJoined, after } = seen
  if (isJoined) return { lost: 'join', ...(answersOf(batch, after).length === 0 ? {} : { isPolled: true }) }
  const isFirst = former.entryCount === 0 && former.lastSeenAtMs === null
  // Before the first report the relay had nothing to answer.
  if (isFirst) {
    const unheard = isUnheardOf(former) && former.checkedAtMs !== null ? { unheardAtMs: former.checkedAtMs } : {}
    return { ...unheard, ...overwrittenByPoll(batch, seen) }
  }
  return { ...overwrittenNames(batch, seen.newNames), ...overwrittenByPoll(batch, seen) }
}

function overwrittenNames(batch: BatchState, newNames: readonly IdentifierState[]): Overwritten {
  if (newNames.length === 0) return {}
  const isKnown = ({ value }: IdentifierState) => findIdentifier(batch, value) !== undefined
  const [added, listed] = [newNames.filter((name) => !isKnown(name)), newNames.filter(isKnown)]
  const valuesOf = (names: readonly IdentifierState[]) => names.map(({ value }) => value)
  return { ...(added.length === 0 ? {} : { added: valuesOf(added) }), ...(listed.length === 0 ? {} : { listed: valuesOf(listed) }) }
}

function overwrittenByPoll(batch: BatchState, { observation, before, after, known, changed }: Overwriting): Overwritten {
  if (observation.kind === 'push') return {}
  const sightings = overwrittenSightings(known, changed)
  const isFirstSeen = observation.sightings.length > 0 && !known.some(({ sighting }) => sighting.source === 'poll')
  const head = overwrittenHead(answersOf(batch, before), answersOf(batch, after), isFirstSeen)
  const tied = before.orderFrom === after.orderFrom ? [] : tieable(known)
  const order = tied.length === 0 ? null : overwrittenOrder(tied, orderOf(batch, before), orderOf(batch, after))
  return { ...(sightings.length === 0 ? {} : { sightings }), ...(head === undefined ? {} : { head }), ...(order === null ? {} : { order }) }
}

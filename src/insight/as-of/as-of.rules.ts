import { deriveEntries, type Entry, instantsTie, orderHistory } from '../../core/domain/history/history.ts'
import type { ApproximateBecause, EntryNews, Overwritten, OverwrittenAt } from '../../core/domain/history/overwritten.ts'
import { type AnswerSource, type ParcelHead, presentWith } from '../../core/domain/history/pull-response.ts'
import { type KeptSighting, listedId, sightingId } from '../../core/domain/history/sightings.ts'

/*
 * A history as it was known at a time is the same merge over fewer sightings (DOMAIN 11). Sequences order what the relay learnt, not times, so a clock
 * that is put back does no harm. What changes have overwritten since is put back first.
 */

/** At a sequence the relay's clock had reached a time, epoch milliseconds. */
export interface ClockMark {
  readonly sequence: number
  readonly atMs: number
}

/** All that is stored of a parcel and decides what the relay has answered about it. */
export interface KnownHistory {
  readonly sightings: readonly KeptSighting[]
  readonly head: ParcelHead | null
  readonly order: readonly string[]
  readonly trackingIds: readonly string[]
  /** All identifiers, tracking ids included. */
  readonly identifiers: readonly string[]
  /** In the order in which changes overwrote them. */
  readonly overwritten: readonly OverwrittenAt[]
  /** Whether older ones were deleted. */
  readonly isCut: boolean
  /** When the clock was put back: the time that it had reached. */
  readonly marks: readonly ClockMark[]
  /** When the store began to keep what changes overwrite; null: it always has. */
  readonly since: ClockMark | null
  /** The times between which the relay answered from a store that a restore has replaced. */
  readonly restores: readonly Span[]
}

export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** What the relay knew of a parcel at a time. */
export interface HistoryAsOf {
  /** Null: it knew nothing of the parcel, or the parcel did not have the identifier yet. */
  readonly source: AnswerSource | null
  /** The identifiers that the parcel had, and whether each was known to be a tracking id. */
  readonly identifiers: ReadonlyMap<string, boolean>
  /** What it knew: everything up to this sequence. */
  readonly sequence: number
  /** When it first could answer, epoch milliseconds; null: it never could. */
  readonly knownFromMs: number | null
  /** Whether the carrier had said by then that it did not know the parcel. */
  readonly isUnheardOf: boolean
  readonly approximate: readonly ApproximateBecause[]
}

/** Merges what was known at a time. `identifier`: the one that is asked for. */
export function historyAsOf(known: KnownHistory, identifier: string, atMs: number): HistoryAsOf {
  const times = timesOf(known)
  const sequence = sequenceAt(times, atMs)
  const later = known.overwritten.filter((change) => sequence < change.sequence)
  const polledFrom = firstPolled(known)
  const named = known.overwritten.findLast(({ added }) => added?.includes(identifier) === true)?.sequence ?? 0
  const reported = known.sightings.reduce((first, kept) => Math.min(first, kept.sequence), polledFrom)
  const knownFrom = Math.max(reported, named)
  const notYet = new Set(later.flatMap(({ added = [] }) => added))
  const trackingIds = trackingIdsAt(known, later)
  const facts = {
    identifiers: new Map(known.identifiers.flatMap((value) => (notYet.has(value) ? [] : [[value, trackingIds.includes(value)]]))),
    sequence,
    knownFromMs: Number.isFinite(knownFrom) ? (times.find((time) => time.sequence >= knownFrom)?.atMs ?? null) : null,
    isUnheardOf: later.some(({ unheardAtMs }) => unheardAtMs !== undefined && unheardAtMs <= atMs),
    approximate: approximateAt(known, { sequence, atMs, later }),
  }
  if (sequence < knownFrom) return { ...facts, source: null }
  const entries = deriveEntries(sightingsAt(known, sequence, later))
  const order = instantsTie(entries) ? (later.find((change) => change.order !== undefined)?.order ?? known.order) : []
  const head = sequence < polledFrom ? null : headAt(known, later)
  return { ...facts, source: presentWith(orderHistory(entries, order), head, trackingIds) }
}

interface LearningTime extends ClockMark {
  /** Whether it is the time of a mark, which is about what follows its sequence. */
  readonly isMark: boolean
}

/** Returns the sequences at which the relay learnt something, in order, with times that never fall. Marks come half a step later. */
function timesOf({ sightings, overwritten, marks, since }: KnownHistory): readonly ClockMark[] {
  const learnt: LearningTime[] = [
    ...sightings.map(({ sequence, learntAtMs }) => ({ sequence, atMs: learntAtMs ?? Number.NEGATIVE_INFINITY, isMark: false })),
    ...overwritten.map(({ sequence, learntAtMs }) => ({ sequence, atMs: learntAtMs, isMark: false })),
    ...[...marks, ...(since === null ? [] : [since])].map(({ sequence, atMs }) => ({ sequence: sequence + 0.5, atMs, isMark: true })),
  ]
  let reachedMs = Number.NEGATIVE_INFINITY
  const bySequence = Map.groupBy(
    learnt.toSorted((a, b) => a.sequence - b.sequence),
    ({ sequence }) => sequence,
  )
  return [...bySequence].map(([sequence, times]) => {
    reachedMs = times.reduce((latest, { atMs }) => Math.max(latest, atMs), reachedMs)
    return { sequence, atMs: reachedMs }
  })
}

/** Returns the last sequence that the relay had learnt of by a time; 0: none. A time that the clock showed twice means the first. */
function sequenceAt(times: readonly ClockMark[], atMs: number): number {
  return times.findLast((time) => time.atMs <= atMs)?.sequence ?? 0
}

/** Returns the first sequence at which a poll had been answered: with a sighting, with none (then the change says so), or before a join. */
function firstPolled({ sightings, overwritten }: KnownHistory): number {
  const polled = sightings.filter(({ sighting }) => sighting.source === 'poll')
  const said = overwritten.filter(({ head, isPolled }) => head === null || isPolled === true)
  return [...polled, ...said].reduce((first, { sequence }) => Math.min(first, sequence), Number.POSITIVE_INFINITY)
}

function headAt({ head }: KnownHistory, later: readonly Overwritten[]): ParcelHead | null {
  const change = later.find((one) => one.head !== undefined)
  return change?.head === undefined ? head : change.head
}

function trackingIdsAt({ trackingIds }: KnownHistory, later: readonly Overwritten[]): readonly string[] {
  const unknown = new Set(later.flatMap(({ added = [], listed = [] }) => [...added, ...listed]))
  return unknown.size === 0 ? trackingIds : trackingIds.filter((id) => !unknown.has(id))
}

function sightingsAt({ sightings }: KnownHistory, sequence: number, later: readonly Overwritten[]): readonly KeptSighting[] {
  const known = sightings.filter((kept) => kept.sequence <= sequence)
  const lost = later.flatMap((change) => change.sightings ?? []).toReversed()
  if (lost.length === 0) return known
  // The first value that was overwritten later is the one of that time. A later entry of a map replaces an earlier one, hence the reversed order.
  const values = new Map(lost.flatMap((value) => value.ids.map((id) => [id, value] as const)))
  return known.map((kept) => {
    const value = values.get(listedId(kept))
    return value === undefined ? kept : { ...kept, askedAtMs: value.askedAtMs, sighting: { ...kept.sighting, extra: value.extra } }
  })
}

function approximateAt(
  { overwritten, isCut, since, sightings, restores }: KnownHistory,
  { sequence, atMs, later }: { readonly sequence: number; readonly atMs: number; readonly later: readonly Overwritten[] },
): readonly ApproximateBecause[] {
  const because = new Set<ApproximateBecause>(later.flatMap(({ lost }) => lost ?? []))
  if (isCut && sequence < (overwritten[0]?.sequence ?? 0)) because.add('limit')
  if (since !== null && sequence <= since.sequence && sightings.some((kept) => kept.sequence <= since.sequence)) because.add('upgrade')
  if (isReplaced(restores, atMs)) because.add('restore')
  return [...because].sort()
}

/** Whether a restore has replaced the store from which the relay answered at a time. */
export function isReplaced(restores: readonly Span[], atMs: number): boolean {
  return restores.some(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs)
}

/** Compares a history with the one of an earlier time: which entries are new or changed since. By the sequence of the entry; an absent one is as before. */
export function newsSince(before: readonly Entry[], sequence: number, now: readonly Entry[]): ReadonlyMap<number, EntryNews> {
  const formerOf = new Map(before.flatMap((entry) => entry.members.map((kept) => [sightingId(kept), entry] as const)))
  const news = new Map<number, EntryNews>()
  for (const entry of now) {
    const formers = new Set(entry.members.flatMap((kept) => formerOf.get(sightingId(kept)) ?? []))
    const learnt = entry.members.filter((kept) => kept.sequence > sequence).toSorted((a, b) => a.sequence - b.sequence)
    const doors = [...new Set(learnt.map(({ sighting }) => sighting.source))]
    const [former] = formers
    if (former === undefined) news.set(entry.sequence, { kind: 'new', doors })
    else if (formers.size > 1 || shownOf(former) !== shownOf(entry)) {
      // Only a poll changes an entry by repeating what was known.
      news.set(entry.sequence, { kind: 'changed', doors: doors.length === 0 ? ['poll'] : doors })
    } else if (doors.length > 0) news.set(entry.sequence, { kind: 'confirmed', doors })
  }
  return news
}

function shownOf({ eventTimestamp, location, displayToConsumer, texts, extra }: Entry): string {
  const inOrder = Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([eventTimestamp, location, displayToConsumer, inOrder, extra])
}

import type { RawMembers } from '../json-body.ts'
import { compareBytes, greatestText } from '../text.ts'
import { canonicalSighting, wholeSighting } from './content.ts'
import { groupOf, joinedKey, keyOf, keysFit, precisionRank, type SightingKey, type Texts } from './observation.ts'
import { type KeptSighting, listedId, sightingId } from './sightings.ts'

/** One status of a parcel, derived from all its sightings (DOMAIN 2). */
export interface Entry {
  readonly status: string
  readonly detailedStatus: string
  /** The time of the entry as its source wrote it (DOMAIN 2.5). */
  readonly eventTimestamp: string
  /** The same instant in epoch milliseconds. */
  readonly atMs: number
  readonly location: string
  readonly displayToConsumer: boolean
  /** The texts by lower-case language tag. */
  readonly texts: Readonly<Record<string, Texts>>
  readonly extra: RawMembers
  /** The entry's position in its group, counted from 0, in the order in which the group's entries were founded (DOMAIN 2.3). */
  readonly founding: number
  /** Its sightings, in the order in which they joined the entry; never empty. */
  readonly members: readonly KeptSighting[]
  /** The lowest sequence of its members, which identifies the entry. */
  readonly sequence: number
}

interface Founding {
  /** The position in the group at which the entry was founded, from 0. */
  readonly nth: number
  readonly members: KeptSighting[]
  readonly listings: Set<number>
  key: SightingKey
}

/** Derives entries from sightings, group by group (DOMAIN 2.3). The order of the sightings does not matter. The entries are in no special order. */
export function deriveEntries(sightings: readonly KeptSighting[]): readonly Entry[] {
  const [only] = sightings
  if (only !== undefined && sightings.length === 1) return [presentLone(only)]
  const entries: Entry[] = []
  // Most seconds have a single sighting, which is an entry by itself.
  for (const ofSecond of Map.groupBy(sightings, (kept) => Math.floor(kept.sighting.instant.atMs / 1000)).values()) {
    const [lone] = ofSecond
    if (lone !== undefined && ofSecond.length === 1) entries.push(presentLone(lone))
    else entries.push(...deriveSecond(ofSecond))
  }
  return entries
}

function deriveSecond(sightings: readonly KeptSighting[]): readonly Entry[] {
  const groups = Map.groupBy(sightings, (kept) => groupOf(kept.sighting))
  return [...groups.values()].flatMap((group) => deriveGroup(group))
}

function deriveGroup(group: readonly KeptSighting[]): readonly Entry[] {
  const [lone] = group
  if (lone !== undefined && group.length === 1) return [presentLone(lone)]
  const founded: Founding[] = []
  // Founded entries by location. Most sightings of a large group have different locations. So each sighting is compared with only a few entries.
  const located = new Map<string, Founding[]>()
  const at = (location: string): Founding[] => {
    const there = located.get(location) ?? []
    if (there.length === 0) located.set(location, there)
    return there
  }
  for (const kept of group.toSorted(compareJoining)) {
    const key = keyOf(kept.sighting)
    const takes = (entry: Founding) => !entry.listings.has(kept.listing) && keysFit(entry.key, key)
    const entry =
      at(key.location).find((candidate) => compareKeys(candidate.key, key) === 0 && takes(candidate)) ??
      (key.location === '' ? founded.find(takes) : earlier(at(key.location).find(takes), at('').find(takes)))
    if (entry === undefined) {
      const founding = { nth: founded.length, members: [kept], listings: listingsOf(kept), key }
      founded.push(founding)
      at(key.location).push(founding)
    } else {
      entry.members.push(kept)
      if (kept.listing !== 0) entry.listings.add(kept.listing)
      const before = entry.key
      entry.key = joinedKey(before, key)
      if (entry.key.location !== before.location) relocate(entry, at(before.location), at(entry.key.location))
    }
  }
  return founded.map(({ members }, founding) => presentEntry(members, founding))
}

function earlier(a: Founding | undefined, b: Founding | undefined): Founding | undefined {
  return a === undefined || (b !== undefined && b.nth < a.nth) ? b : a
}

function relocate(entry: Founding, from: Founding[], to: Founding[]): void {
  from.splice(from.indexOf(entry), 1)
  to.push(entry)
  to.sort((a, b) => a.nth - b.nth)
}

/** An entry that begins with this sighting takes no other sighting of these listings. Empty: the sighting's listing has no other sighting. */
function listingsOf(kept: KeptSighting): Set<number> {
  return new Set(kept.listing === 0 ? [] : [kept.listing])
}

/**
 * Compares sightings of a group for the order in which they join entries (DOMAIN 2.3). Listings are compared last, so that equal sightings of
 * several listings join one after the other.
 */
function compareJoining(a: KeptSighting, b: KeptSighting): number {
  const aKey = keyOf(a.sighting)
  const bKey = keyOf(b.sighting)
  return (
    precisionRank(aKey) - precisionRank(bKey) ||
    compareKeys(aKey, bKey) ||
    a.ordinal - b.ordinal ||
    compareBytes(canonicalSighting(a.sighting, a.content), canonicalSighting(b.sighting, b.content)) ||
    a.listing - b.listing
  )
}

function compareKeys(a: SightingKey, b: SightingKey): number {
  return Number(a.whole) - Number(b.whole) || a.atMs - b.atMs || compareBytes(a.location, b.location)
}

/** Chooses each value of an entry (DOMAIN 2.5): from the last-asked poll that has it, or else from the pushes. */
function presentEntry(members: readonly KeptSighting[], founding: number): Entry {
  const [first] = members
  if (first !== undefined && members.length === 1) return presentLone(first, founding)
  const polls = members.filter((kept) => kept.sighting.source === 'poll').sort(compareLastAsked)
  const pushes = members.filter((kept) => kept.sighting.source === 'push').map((kept) => kept.sighting)
  const lastAsked = polls[0]?.sighting
  const instant = lastAsked?.instant ?? greatestInstant(pushes.map((push) => push.instant)) ?? { text: '', atMs: 0 }
  const shown = polls.find((kept) => kept.sighting.displayToConsumer !== null)?.sighting.displayToConsumer
  return {
    status: first?.sighting.status ?? '',
    detailedStatus: first?.sighting.detailedStatus ?? '',
    eventTimestamp: instant.text,
    atMs: instant.atMs,
    location: lastAsked?.location ?? greatestText(pushes.map((push) => push.location)) ?? '',
    displayToConsumer: shown ?? pushes.some((push) => push.displayToConsumer === true),
    texts: presentTexts(polls, pushes),
    extra: lastAsked?.extra ?? [],
    founding,
    members,
    sequence: members.reduce((least, kept) => Math.min(least, kept.sequence), Number.POSITIVE_INFINITY),
  }
}

/** Does the same as `presentEntry` for a single sighting, without comparisons. It is faster, and most entries have only one sighting. */
function presentLone(kept: KeptSighting, founding = 0): Entry {
  const { source, status, detailedStatus, instant, location, displayToConsumer, texts, extra } = kept.sighting
  return {
    status,
    detailedStatus,
    eventTimestamp: instant.text,
    atMs: instant.atMs,
    location,
    displayToConsumer: displayToConsumer === true,
    texts,
    extra: source === 'poll' ? extra : [],
    founding,
    members: [kept],
    sequence: kept.sequence,
  }
}

/** Compares sightings: the last-asked one comes first. If they were asked for at the same time, the bytewise greatest comes first. */
function compareLastAsked(a: KeptSighting, b: KeptSighting): number {
  return b.askedAtMs - a.askedAtMs || compareBytes(wholeSighting(b.sighting, b.content), wholeSighting(a.sighting, a.content))
}

function greatestInstant<T extends { readonly text: string }>(instants: readonly T[]): T | undefined {
  const text = greatestText(instants.map((instant) => instant.text))
  return instants.find((instant) => instant.text === text)
}

function presentTexts(polls: readonly KeptSighting[], pushes: readonly KeptSighting['sighting'][]): Readonly<Record<string, Texts>> {
  const sources = [...polls.map((kept) => kept.sighting), ...pushes]
  const languages = new Set(sources.flatMap((sighting) => Object.keys(sighting.texts)))
  const textIn = (language: string, field: keyof Texts): string | null | undefined => {
    const poll = polls.find((kept) => kept.sighting.texts[language]?.[field] !== undefined)
    if (poll !== undefined) return poll.sighting.texts[language]?.[field]
    return greatestText(pushes.flatMap((push) => push.texts[language]?.[field] ?? []))
  }
  return Object.fromEntries(
    [...languages].map((language) => {
      const consumer = textIn(language, 'consumer')
      const detailed = textIn(language, 'detailed')
      return [language, { ...(consumer === undefined ? {} : { consumer }), ...(detailed === undefined ? {} : { detailed }) }]
    }),
  )
}

/** Whether two of the entries have the same instant, so that the order answer decides their order (DOMAIN 3.1). */
export function instantsTie(entries: readonly Entry[]): boolean {
  return new Set(entries.map((entry) => entry.atMs)).size < entries.length
}

/**
 * Orders entries, newest first (DOMAIN 3.1). `orderAnswer`: the `listedId` of each sighting of the answer that decides the order of entries with
 * the same instant, in the order of that answer.
 */
export function orderHistory(entries: readonly Entry[], orderAnswer: readonly string[]): readonly Entry[] {
  const byInstant = entries.toSorted((a, b) => b.atMs - a.atMs)
  if (!byInstant.some(({ atMs }, at) => atMs === byInstant[at - 1]?.atMs)) return byInstant
  const indexes = new Map(orderAnswer.map((id, index) => [id, index]))
  const ranked = byInstant.map((entry, at) => {
    const isTied = entry.atMs === byInstant[at - 1]?.atMs || entry.atMs === byInstant[at + 1]?.atMs
    return { entry, index: isTied ? indexOf(entry, indexes) : -1 }
  })
  return ranked.sort(compareRanked).map(({ entry }) => entry)
}

interface Ranked {
  readonly entry: Entry
  /** The index of the entry in the order answer; -1: the answer does not list it, or no other entry has its instant. */
  readonly index: number
}

function indexOf(entry: Entry, indexes: ReadonlyMap<string, number>): number {
  return entry.members.reduce((found, kept) => Math.max(found, indexes.get(listedId(kept)) ?? -1), -1)
}

function compareRanked(a: Ranked, b: Ranked): number {
  if (a.entry.atMs !== b.entry.atMs) return b.entry.atMs - a.entry.atMs
  if (a.index !== b.index) return a.index - b.index
  return (
    compareBytes(a.entry.detailedStatus, b.entry.detailedStatus) ||
    compareBytes(a.entry.status, b.entry.status) ||
    compareBytes(a.entry.location, b.entry.location) ||
    a.entry.founding - b.entry.founding
  )
}

/** Returns the highest sequence of the entries; 0: there are no entries. */
export function lastSequenceOf(entries: readonly Entry[]): number {
  return entries.reduce((last, { sequence }) => Math.max(last, sequence), 0)
}

export function languagesOf(entry: Entry): readonly string[] {
  return Object.keys(entry.texts).sort(compareBytes)
}

/** How an observation has changed one entry. `entry` is the entry now (CONTRACT, the feed). */
export interface EntryChange {
  /**
   * `entry`: the entry is new. `update`: answers now show it differently. `united`: it was formed from two or more entries or parts of them.
   * `split`: it was part of another entry. That other entry keeps its id, because it keeps its first sighting.
   */
  readonly kind: 'entry' | 'update' | 'united' | 'split'
  readonly entry: Entry
}

/** Compares the entries of some groups before and after an observation. `after` must contain every sighting of `before`. */
export function diffEntries(before: readonly Entry[], after: readonly Entry[]): readonly EntryChange[] {
  if (before.length === 0) return after.map((entry) => ({ kind: 'entry', entry }))
  const formerOf = new Map(before.flatMap((entry) => entry.members.map((kept) => [sightingId(kept), entry] as const)))
  return after.flatMap((entry): EntryChange[] => {
    const formers = new Set(entry.members.flatMap((kept) => formerOf.get(sightingId(kept)) ?? []))
    const [former] = formers
    if (former === undefined) return [{ kind: 'entry', entry }]
    if (formers.size > 1) return [{ kind: 'united', entry }]
    // The first sighting of an entry identifies it. After a split, the entry with that sighting is the old one, and the other one is new.
    if (!entry.members.some((kept) => kept.sequence === former.sequence)) return [{ kind: 'split', entry }]
    return sameMembers(former, entry) || sameValue(former, entry) ? [] : [{ kind: 'update', entry }]
  })
}

function sameMembers(a: Entry, b: Entry): boolean {
  return a.members.length === b.members.length && a.members.every((kept, at) => kept === b.members[at])
}

function sameValue(a: Entry, b: Entry): boolean {
  return servedValue(a) === servedValue(b)
}

function servedValue(entry: Entry): string {
  const { eventTimestamp, location, displayToConsumer, extra } = entry
  const texts = Object.entries(entry.texts).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([eventTimestamp, location, displayToConsumer, texts, extra])
}

/** Where a report about an entry came from: a push of the carrier, or its answer to a poll. */
export type Source = KeptSighting['sighting']['source']

/** The first report of an entry by one source. */
export interface FirstReport {
  readonly source: Source
  /** Epoch milliseconds; null: not known. */
  readonly atMs: number | null
}

export interface Learning {
  readonly first: FirstReport
  /** The first report by the other source; null: that source has not reported the entry. */
  readonly confirmed: FirstReport | null
}

/**
 * Finds out which source reported an entry first, and when the other source reported it.
 *
 * Unlike everything else about an entry, the result depends on the order in which observations arrive. A repeated sighting does not change the
 * result, because a sighting keeps the time at which the relay first learnt of it.
 */
export function learningOf({ members }: Pick<Entry, 'members'>): Learning {
  const first = members.reduce(earlierReport)
  const { source } = first.sighting
  const others = members.filter(({ sighting }) => sighting.source !== source)
  return { first: reportOf(first), confirmed: others.length === 0 ? null : reportOf(others.reduce(earlierReport)) }
}

/** Compares sequences and not times, because some sightings have no time, and because the clock may have been put back. */
function earlierReport(a: KeptSighting, b: KeptSighting): KeptSighting {
  return b.sequence < a.sequence ? b : a
}

function reportOf({ sighting, learntAtMs }: KeptSighting): FirstReport {
  return { source: sighting.source, atMs: learntAtMs }
}

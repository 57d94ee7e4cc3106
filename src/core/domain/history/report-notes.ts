import { QUARTER_MS } from '../calendar.ts'
import type { Entry } from './history.ts'
import type { ObservationSource, PollObservation } from './observation.ts'
import type { ParcelState } from './parcel-state.ts'
import type { KeptSighting } from './sightings.ts'

/** What a push can be counted as besides bringing an entry (DOMAIN 10.4 to 10.6). */
export type PushFault = 'repeated' | 'reworded' | 'outOfOrder' | 'quarantined'

/** A fact that the carrier's report counts (DOMAIN 10). Times are epoch milliseconds. */
export type Noted =
  | {
      /** The first push of an entry. `atMs`: when the entry happened, never later than the push came. */
      readonly kind: 'pushed'
      readonly atMs: number
      readonly latenessMs: number
      readonly isLate: boolean
      readonly inboxId: number
      /** The sequences under which polls had reported the entry; empty: none had. */
      readonly polledAs: readonly number[]
    }
  | { readonly kind: PushFault; readonly atMs: number; readonly inboxId: number }
  | { readonly kind: 'disagreed'; readonly atMs: number; readonly parcelId: number }
  | { readonly kind: 'lost'; readonly atMs: number; readonly parcelId: number; readonly entry: number }
  | { readonly kind: 'outage'; readonly fromMs: number; readonly untilMs: number }

/** What the report has evidence of. */
export const EVIDENCE_NAMES: readonly string[] = [
  'late',
  'repeated',
  'reworded',
  'outOfOrder',
  'quarantined',
  'lost',
  'disagreed',
  'outage',
]

/** An observation that was merged into a parcel. */
interface Merged {
  readonly source: ObservationSource
  /** The parcel before the observation. */
  readonly parcel: Pick<ParcelState, 'parcelId' | 'latest'>
  /** The entries that the observation may have changed, as they are now. After a push these are those of its second. */
  readonly entries: readonly Entry[]
  /** The sightings that are new, or that a later poll has reported again. */
  readonly changed: readonly KeptSighting[]
  /** When the push came; for a poll, now. */
  readonly learntAtMs: number
  /** How late a push may be (`poll.missedPushGrace`). */
  readonly graceMs: number
}

/** Finds what the report counts of an observation that was merged into a parcel. */
export function notedOfMerge(merged: Merged): readonly Noted[] {
  const { source, entries, parcel, learntAtMs, graceMs } = merged
  if (source.kind === 'push') return notedOfPush(merged, source.inboxId)
  const { observation } = source
  const isDisputed = entries.some((entry) => differs(entry) || isLeftOut(entry, observation, graceMs))
  return isDisputed ? [{ kind: 'disagreed', atMs: learntAtMs, parcelId: parcel.parcelId }] : []
}

function notedOfPush({ parcel, entries, changed: [own], learntAtMs, graceMs }: Merged, inboxId: number): readonly Noted[] {
  const here = { atMs: learntAtMs, inboxId }
  if (own === undefined) return [{ kind: 'repeated', ...here }]
  const entry = entries.find(({ members }) => members.includes(own))
  const others = entry?.members.filter((kept) => kept !== own) ?? []
  if (others.some(({ sighting }) => sighting.source === 'push')) return [{ kind: 'reworded', ...here }]
  const eventAtMs = own.sighting.instant.atMs
  const latenessMs = Math.max(0, learntAtMs - eventAtMs)
  const polledAs = others.map(({ sequence }) => sequence)
  const noted: Noted[] = [
    { kind: 'pushed', atMs: Math.min(eventAtMs, learntAtMs), latenessMs, isLate: latenessMs > graceMs, inboxId, polledAs },
  ]
  if (others.length === 0 && parcel.latest !== null && parcel.latest.atMs > eventAtMs) noted.push({ kind: 'outOfOrder', ...here })
  if (entry !== undefined && others.length > 0 && differs(entry))
    noted.push({ kind: 'disagreed', atMs: learntAtMs, parcelId: parcel.parcelId })
  return noted
}

/** Whether a complete answer leaves out an entry that a push had brought more than the grace before the question (DOMAIN 10.7). */
function isLeftOut({ members }: Entry, { skipped, isPartial, askedAtMs }: PollObservation, graceMs: number): boolean {
  if (skipped > 0 || isPartial === true) return false
  return members.every(({ sighting, learntAtMs }) => sighting.source === 'push' && learntAtMs !== null && learntAtMs + graceMs < askedAtMs)
}

/** Whether pushes and the last poll of an entry say different things of it, and no push says the same as the poll (DOMAIN 10.7). */
function differs({ members }: Entry): boolean {
  const pushes = members.filter(({ sighting }) => sighting.source === 'push').map(({ sighting }) => sighting)
  if (pushes.length === 0 || pushes.length === members.length) return false
  const polls = members.filter(({ sighting }) => sighting.source === 'poll').toSorted((a, b) => b.askedAtMs - a.askedAtMs)
  const isContradicted = <Value>(polled: Value | null | undefined, pushed: readonly (Value | null | undefined)[]): boolean => {
    const said = pushed.filter((value) => isSaid(value))
    return isSaid(polled) && said.length > 0 && !said.includes(polled)
  }
  const isShown = polls.find(({ sighting }) => sighting.displayToConsumer !== null)?.sighting.displayToConsumer
  if (
    isContradicted(
      isShown,
      pushes.map(({ displayToConsumer }) => displayToConsumer),
    )
  )
    return true
  const languages = new Set(polls.flatMap(({ sighting }) => Object.keys(sighting.texts)))
  return [...languages].some((language) => {
    const polled = polls.find(({ sighting }) => sighting.texts[language] !== undefined)?.sighting.texts[language]
    return (['consumer', 'detailed'] as const).some((name) =>
      isContradicted(
        polled?.[name],
        pushes.map(({ texts }) => texts[language]?.[name]),
      ),
    )
  })
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/*
 * A histogram of how late pushes are. Each class ends at 1.1 times the end of the class before it, so a percentile is at most 5 % off. Histograms
 * of days can be added.
 */
const FIRST_CLASS_MS = 100
const GROWTH = Math.log(1.1)
const CLASSES_MAX = 200

export function latenessClassOf(latenessMs: number): number {
  return latenessMs <= FIRST_CLASS_MS ? 0 : Math.min(CLASSES_MAX, Math.ceil(Math.log(latenessMs / FIRST_CLASS_MS) / GROWTH))
}

/** Returns the middle of a class, in milliseconds. */
export function latenessOfClass(at: number): number {
  return at === 0 ? FIRST_CLASS_MS / 2 : FIRST_CLASS_MS * Math.exp(GROWTH * (at - 0.5))
}

const CLASS_NAMES = Array.from({ length: CLASSES_MAX + 1 }, (_, at) => `b${at}`)

/** A note keeps at most this many ids of a kind as evidence. */
const EVIDENCE_MAX = 20

/**
 * What a transaction adds to the report. It counts by quarters of an hour since the epoch (`QUARTER_MS`), which can be added up to the days of any time
 * zone.
 */
export interface ReportNote {
  /** Counts by quarter, then by name. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly evidence?: readonly (readonly [name: string, quarter: number, inboxId: number])[]
  /** First pushes of entries that polls had reported. `isLate`: 1 or 0. */
  readonly polled?: readonly (readonly [quarter: number, isLate: number, inboxId: number, ...polledAs: readonly number[]])[]
  readonly lost?: readonly (readonly [quarter: number, entry: number, parcelId: number])[]
  readonly disagreed?: readonly (readonly [quarter: number, parcelId: number])[]
  readonly outages?: readonly (readonly [fromMs: number, untilMs: number])[]
}

type ListName = Exclude<keyof ReportNote, 'counts'>
type Lists = { readonly [Name in ListName]-?: NonNullable<ReportNote[Name]>[number][] }

/** Adds up what a transaction has noted. */
export function summarizeNotes(noted: readonly Noted[]): ReportNote {
  const counts: Record<string, Record<string, number>> = {}
  const lists: Lists = { evidence: [], polled: [], lost: [], disagreed: [], outages: [] }
  const kept = new Map<string, number>()
  let last: { readonly quarter: number; readonly names: Record<string, number> } | null = null
  const count = (quarter: number, name: string) => {
    // Most pushes of a batch are of one quarter.
    if (last?.quarter !== quarter) {
      const names = counts[quarter] ?? {}
      counts[quarter] = names
      last = { quarter, names }
    }
    last.names[name] = (last.names[name] ?? 0) + 1
  }
  const countProved = (name: string, quarter: number, inboxId: number) => {
    count(quarter, name)
    const nth = kept.get(name) ?? 0
    kept.set(name, nth + 1)
    if (nth < EVIDENCE_MAX) lists.evidence.push([name, quarter, inboxId])
  }
  for (const one of noted) {
    if (one.kind === 'outage') {
      lists.outages.push([one.fromMs, one.untilMs])
      continue
    }
    const quarter = Math.floor(one.atMs / QUARTER_MS)
    if (one.kind === 'lost') lists.lost.push([quarter, one.entry, one.parcelId])
    else if (one.kind === 'disagreed') lists.disagreed.push([quarter, one.parcelId])
    else if (one.kind === 'pushed') {
      count(quarter, 'pushed')
      count(quarter, CLASS_NAMES[latenessClassOf(one.latenessMs)] ?? '')
      if (one.polledAs.length > 0) lists.polled.push([quarter, one.isLate ? 1 : 0, one.inboxId, ...one.polledAs])
      if (one.isLate) countProved('late', quarter, one.inboxId)
    } else countProved(one.kind, quarter, one.inboxId)
  }
  return { counts, ...Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)) }
}

import { notAhead } from '../instant.ts'
import type { AnswerSource } from './pull-response.ts'
import type { KeptSighting, Renumbered } from './sightings.ts'

/** The newest entry of a parcel. Times are epoch milliseconds. */
export interface LatestEntry {
  readonly status: string
  /** The time by the carrier's clock, which orders histories. */
  readonly atMs: number
  /**
   * When the relay learnt of the entry, if that was before `atMs`. The carrier's clock is then ahead, so schedules use this time (DOMAIN
   * 6.1). Absent: the relay learnt of the entry at `atMs` or later.
   */
  readonly learntAtMs?: number
}

/** Makes the record of a parcel's latest entry. If `before` is the same entry, its time of learning stays. */
function latestEntry(entry: LatestEntry, before: LatestEntry | null, nowMs: number): LatestEntry {
  const { status, atMs } = entry
  const learntAtMs = isSameEntry(entry, before) ? notAhead(countsFromMs(before), nowMs) : nowMs
  return learntAtMs < atMs ? { status, atMs, learntAtMs } : { status, atMs }
}

/** A push and a poll may give the same entry times that differ within a second. */
export function isSameEntry(one: LatestEntry, other: LatestEntry | null): other is LatestEntry {
  return other !== null && other.status === one.status && secondOf(other) === secondOf(one)
}

function secondOf({ atMs }: LatestEntry): number {
  return Math.floor(atMs / 1000)
}

/**
 * Returns the time of an entry for schedules, ages and learning: the carrier's time or the time at which the relay learnt of the entry,
 * whichever is earlier.
 */
export function countsFromMs({ atMs, learntAtMs }: LatestEntry): number {
  return learntAtMs ?? atMs
}

/** The state of a parcel apart from its sightings. Times are epoch milliseconds. */
export interface ParcelState {
  readonly parcelId: number
  /** When the relay began to watch (poll) the parcel; null: the parcel is not watched. */
  readonly watchedAtMs: number | null
  /** The earliest `eventTime` of the parcel's pushes; null: no push was recorded. */
  readonly firstPushedAtMs: number | null
  /** The latest time at which a push about the parcel came, an app asked for it, or an operator watched it. */
  readonly activatedAtMs: number
  readonly entryCount: number
  readonly latest: LatestEntry | null
  /** When a push or poll last reported on the parcel; null: never. */
  readonly lastSeenAtMs: number | null
  readonly checkedAtMs: number | null
  readonly failures: number
  readonly nextPollAtMs: number | null
  readonly stopped: 'delivered' | 'stale' | 'unknown' | 'unwatched' | null
  /** Whether an observation was refused because the parcel would have had too many entries. */
  readonly full: boolean
}

/**
 * Returns what the state of a parcel repeats of its entries. `entries`: the newest first; `others`: how many more entries there are, which are as they
 * were; `learntAtMs`: when the relay learnt of the newest.
 */
export function repeatedOf({ latest }: ParcelState, entries: readonly LatestEntry[], others: number, learntAtMs: number) {
  const [newest] = entries
  const isBehind = others > 0 && newest !== undefined && latest !== null && secondOf(newest) < secondOf(latest)
  const now = newest === undefined ? null : isBehind ? latest : latestEntry(newest, latest, learntAtMs)
  return { entryCount: entries.length + others, latest: now } satisfies Partial<ParcelState>
}

type Checked = Pick<ParcelState, 'lastSeenAtMs' | 'checkedAtMs' | 'failures'>

/** Whether the carrier has never reported on a parcel and, at the last poll, did not know it. It may know it later. */
export function isUnheardOf({ lastSeenAtMs, checkedAtMs, failures }: Checked): boolean {
  return lastSeenAtMs === null && checkedAtMs !== null && failures === 0
}

export function newParcel(parcelId: number, nowMs: number): ParcelState {
  return {
    parcelId,
    watchedAtMs: null,
    firstPushedAtMs: null,
    activatedAtMs: nowMs,
    entryCount: 0,
    latest: null,
    lastSeenAtMs: null,
    checkedAtMs: null,
    failures: 0,
    nextPollAtMs: null,
    stopped: null,
    full: false,
  }
}

/** A parcel that is joined with others, with all its sightings. */
export interface JoinedParcel {
  readonly state: ParcelState
  readonly sightings: readonly KeptSighting[]
}

/** Parcels that proved to be one (DOMAIN 1.4). */
export interface ParcelJoin {
  /** The parcel that remains, as it was before the join. */
  readonly survivor: JoinedParcel
  /** The parcels that are joined to the survivor, in order, each with the sequence of its `join` event in the feed. */
  readonly others: readonly (JoinedParcel & { readonly sequence: number })[]
  /** The survivor after the join. */
  readonly parcel: ParcelState
  /** The sightings that more than one of the parcels had, as they are after the join. */
  readonly shared: readonly KeptSighting[]
  /** The sequences that these sightings no longer have. Events of the feed that name them are about the sighting that stays. */
  readonly renumbered: readonly Renumbered[]
  readonly nowMs: number
}

export interface IdentifierState {
  readonly value: string
  readonly parcelId: number
  /** True: the carrier has listed it in `trackingIds`. False: only apps or operators have named it. */
  readonly isTrackingId: boolean
}

/** What answers about a parcel are made from. Times are epoch milliseconds. */
export interface ParcelView extends AnswerSource {
  readonly parcelId: number
  /** Rises whenever the data changes, so that caches notice the change. Always 0 if only one process writes the store. */
  readonly version: number
  readonly lastSeenAtMs: number | null
  readonly watched: boolean
  /** See `isUnheardOf`. */
  readonly unknownToCarrier: boolean
  /** The languages that need not be fetched again, because all entries that came after the fetch have texts in them (DOMAIN 4.2). */
  readonly languagesAsked: readonly string[]
}

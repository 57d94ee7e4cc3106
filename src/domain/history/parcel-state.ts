import { notAhead } from '../put-back.ts'
import type { AnswerSource } from './pull-response.ts'
import type { KeptSighting } from './sightings.ts'

/** The newest entry of a parcel. Times are epoch milliseconds. */
export interface LatestEntry {
  readonly status: string
  /** The carrier's time, which orders histories. */
  readonly atMs: number
  /**
   * When the relay learnt of it, if that was before `atMs`. It then counts instead, because the carrier's time is not our clock (DOMAIN
   * 6.1).
   */
  readonly learntAtMs?: number
}

/** The newest entry as a parcel's latest. An entry that was the latest before keeps the time at which it was learnt of. */
export function latestEntry(entry: LatestEntry, before: LatestEntry | null, nowMs: number): LatestEntry {
  const { status, atMs } = entry
  // The same entry may be dated a little differently by another source.
  const isSame = before !== null && before.status === status && Math.floor(before.atMs / 1000) === Math.floor(atMs / 1000)
  const learntAtMs = isSame ? notAhead(countsFromMs(before), nowMs) : nowMs
  return learntAtMs < atMs ? { status, atMs, learntAtMs } : { status, atMs }
}

/**
 * The time at which an entry counts as having happened, for schedules, ages and learning: the earlier of its time and when it was learnt
 * of.
 */
export function countsFromMs({ atMs, learntAtMs }: LatestEntry): number {
  return learntAtMs ?? atMs
}

/** The state of a parcel apart from its sightings. Times are epoch milliseconds. */
export interface ParcelState {
  readonly parcelId: number
  /** When polling for it began; null: it is not polled. */
  readonly watchedAtMs: number | null
  /** The earliest `eventTime` of its pushes; null: there were none. */
  readonly firstPushedAtMs: number | null
  /** When it was last pushed, asked for by an app, or ordered to be watched. */
  readonly activatedAtMs: number
  readonly entryCount: number
  /** The newest entry; null: it has none. */
  readonly latest: LatestEntry | null
  /** When a push or poll last reported on it; null: never. */
  readonly lastSeenAtMs: number | null
  readonly checkedAtMs: number | null
  readonly failures: number
  readonly nextPollAtMs: number | null
  readonly stopped: 'delivered' | 'stale' | 'unknown' | 'unwatched' | null
  /** Whether it reached the maximum number of entries. */
  readonly full: boolean
}

/** A parcel about which nothing is known yet. */
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

/** A parcel that takes part in a join, with all its sightings. */
export interface JoinedParcel {
  readonly state: ParcelState
  readonly sightings: readonly KeptSighting[]
}

/** Parcels that proved to be one (DOMAIN 1.4). */
export interface ParcelJoin {
  /** The surviving parcel, as it was. */
  readonly survivor: JoinedParcel
  /** The parcels that are joined to it, in order, each with the sequence of its join event. */
  readonly others: readonly (JoinedParcel & { readonly sequence: number })[]
  /** The surviving parcel after the join. */
  readonly parcel: ParcelState
  /** The sightings that several of the joined parcels had, as they are kept after the join. */
  readonly shared: readonly KeptSighting[]
  readonly nowMs: number
}

/** An identifier and the parcel it leads to. */
export interface IdentifierState {
  readonly value: string
  readonly parcelId: number
  /** Whether the carrier listed it in `trackingIds`; false: an app or an operator asked for it. */
  readonly isTrackingId: boolean
}

/** Everything that answers about a parcel are made from. */
export interface ParcelView extends AnswerSource {
  readonly parcelId: number
  /** Rises whenever an answer about the parcel changes. Always 0 where one process writes the store. */
  readonly version: number
  /** When a push or poll last reported on this parcel, epoch milliseconds; null: never. */
  readonly lastSeenAtMs: number | null
  readonly watched: boolean
  /** The carrier has never reported on it, and answered to the last poll that it does not know it. */
  readonly unknownToCarrier: boolean
  /** Languages that were fetched, unless an entry without them was added since. They are not fetched again (DOMAIN 4.2). */
  readonly languagesAsked: readonly string[]
}

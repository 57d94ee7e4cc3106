import { notAhead } from '../put-back.ts'
import type { AnswerSource } from './pull-response.ts'
import type { KeptSighting } from './sightings.ts'

/** The newest entry of a parcel. Times are epoch milliseconds. */
export interface LatestEntry {
  readonly status: string
  /** The carrier's time, which orders histories. */
  readonly atMs: number
  /**
   * When the relay learnt of it, if that was before `atMs`. Then this time counts, because the carrier's clock is not ours (DOMAIN 6.1).
   */
  readonly learntAtMs?: number
}

/** The newest entry as a parcel's latest. If it was the latest before, it keeps the time at which the relay learnt of it. */
export function latestEntry(entry: LatestEntry, before: LatestEntry | null, nowMs: number): LatestEntry {
  const { status, atMs } = entry
  // Another source may give the same entry a slightly different time.
  const isSame = before !== null && before.status === status && Math.floor(before.atMs / 1000) === Math.floor(atMs / 1000)
  const learntAtMs = isSame ? notAhead(countsFromMs(before), nowMs) : nowMs
  return learntAtMs < atMs ? { status, atMs, learntAtMs } : { status, atMs }
}

/**
 * The time from which an entry counts, for schedules, ages and learning: its own time, or when the relay learnt of it if that was earlier.
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
  /** The last time that it was pushed, an app asked for it, or an operator watched it. */
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
  /** Whether it has the maximum number of entries. */
  readonly full: boolean
}

type Checked = Pick<ParcelState, 'lastSeenAtMs' | 'checkedAtMs' | 'failures'>

/** Whether all that is known of a parcel is that the carrier did not know it when it was last asked. It may still get to know it. */
export function isUnheardOf({ lastSeenAtMs, checkedAtMs, failures }: Checked): boolean {
  return lastSeenAtMs === null && checkedAtMs !== null && failures === 0
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
  /** The surviving parcel before the join. */
  readonly survivor: JoinedParcel
  /** The parcels that are joined to it, in order, each with the sequence of its join event. */
  readonly others: readonly (JoinedParcel & { readonly sequence: number })[]
  /** The surviving parcel after the join. */
  readonly parcel: ParcelState
  /** Sightings that several of the parcels had, as they are after the join. */
  readonly shared: readonly KeptSighting[]
  readonly nowMs: number
}

/** An identifier and its parcel. */
export interface IdentifierState {
  readonly value: string
  readonly parcelId: number
  /** Whether the carrier listed it in `trackingIds`. False: only an app or an operator has named it. */
  readonly isTrackingId: boolean
}

/** Everything that answers about a parcel are made from. */
export interface ParcelView extends AnswerSource {
  readonly parcelId: number
  /** Rises whenever an answer about the parcel changes. Always 0 if only one process writes the store. */
  readonly version: number
  /** When a push or poll last reported on this parcel, epoch milliseconds; null: never. */
  readonly lastSeenAtMs: number | null
  readonly watched: boolean
  /** Whether the carrier has never reported on it, and answered the last poll that it does not know it. */
  readonly unknownToCarrier: boolean
  /** Languages that were fetched, and since then no entry without them was added. They are not fetched again (DOMAIN 4.2). */
  readonly languagesAsked: readonly string[]
}

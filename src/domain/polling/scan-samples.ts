import type { Entry } from '../history/history.ts'
import type { PollObservation, PushObservation } from '../history/observation.ts'
import { countsFromMs, type LatestEntry } from '../history/parcel-state.ts'
import { notAhead } from '../put-back.ts'
import { FINISHED } from './cadence.ts'
import type { ScanSample } from './scan-rate.ts'

/** The state of a parcel before an observation. */
export interface KnownBefore {
  readonly latest: LatestEntry | null
  readonly entryCount: number
  readonly checkedAtMs: number | null
  readonly lastSeenAtMs: number | null
}

/** When the observation was recorded. */
export interface LearntAt {
  readonly nowMs: number
  /** The highest sequence before the observation. */
  readonly knownTo: number
}

/**
 * The samples of the scan rate that an observation gives. `entries`: the changed part of the history in its new state; for a poll, all of
 * it. Only entries that are newer than all known ones count. An older one would correct an earlier sample, but that is too rare to matter.
 * The carrier's times order the entries, but no entry counts as later than the relay learnt of it (DOMAIN 6.1).
 */
export function scanSamplesOf(
  before: KnownBefore,
  observation: PushObservation | PollObservation,
  entries: readonly Entry[],
  { nowMs, knownTo }: LearntAt,
): readonly ScanSample[] {
  const oldestFirst = entries.length < 2 ? entries : entries.toSorted((a, b) => a.atMs - b.atMs)
  const newer = oldestFirst.filter(({ atMs }) => before.latest === null || atMs > before.latest.atMs)
  // The relay learnt of a known entry when the parcel was last seen, or earlier.
  const countsMs = ({ atMs, sequence }: Entry) => Math.min(atMs, sequence > knownTo ? nowMs : (before.lastSeenAtMs ?? nowMs))
  const timed = (all: readonly Entry[]) => all.map((entry) => ({ status: entry.status, atMs: countsMs(entry) }))
  return observation.kind === 'push'
    ? waits(before, timed(newer), null)
    : [...waits(before, timed(newer), notAhead(observation.askedAtMs, nowMs)), ...nthEntries(before, timed(oldestFirst))]
}

/** An entry with the time at which it counts. */
interface Timed {
  readonly status: string
  readonly atMs: number
}

/** The waits that new entries have ended. A poll also shows the wait that is still going on. */
function waits(before: KnownBefore, newer: readonly Timed[], askedAtMs: number | null): readonly ScanSample[] {
  const { latest, entryCount, checkedAtMs } = before
  const chain = latest === null ? newer : [{ status: latest.status, atMs: countsFromMs(latest) }, ...newer]
  const firstNth = latest === null ? 1 : entryCount
  return chain.flatMap(({ status, atMs }, at): ScanSample[] => {
    const next = chain[at + 1]
    const toMs = next?.atMs ?? askedAtMs
    if (toMs === null || status === FINISHED) return []
    // An earlier poll has already given a sample of the first part of this wait.
    const fromMs = Math.max(atMs, checkedAtMs ?? atMs)
    return [{ kind: 'wait', status, entryCount: firstNth + at, fromMs, toMs, scanned: next !== undefined }]
  })
}

/**
 * The new entries of a poll with their numbers. Entries up to the poll before have given their samples then. A push gives none, because it
 * does not show a complete history.
 */
function nthEntries({ checkedAtMs }: KnownBefore, oldestFirst: readonly Timed[]): readonly ScanSample[] {
  return oldestFirst.flatMap(({ status, atMs }, at): ScanSample[] =>
    atMs > (checkedAtMs ?? Number.NEGATIVE_INFINITY) ? [{ kind: 'place', status, entryCount: at + 1 }] : [],
  )
}

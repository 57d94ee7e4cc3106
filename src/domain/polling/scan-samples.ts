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
 * The samples that an observation gives of the scan rate. `entries`: the affected part of the history in its new state, for a poll all of
 * it. Only entries newer than all known ones count: one found between two known ones would correct an earlier sample, which is too rare to
 * matter. The carrier's times order the entries, but none counts as later than the relay learnt of it (DOMAIN 6.1).
 */
export function scanSamplesOf(
  before: KnownBefore,
  observation: PushObservation | PollObservation,
  entries: readonly Entry[],
  { nowMs, knownTo }: LearntAt,
): readonly ScanSample[] {
  const oldestFirst = entries.length < 2 ? entries : entries.toSorted((a, b) => a.atMs - b.atMs)
  const newer = oldestFirst.filter(({ atMs }) => before.latest === null || atMs > before.latest.atMs)
  // An entry that was known before was learnt of when the parcel was last seen, or earlier.
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

/** The waits that new entries ended and, for a poll, the one still going on. */
function waits(before: KnownBefore, newer: readonly Timed[], askedAtMs: number | null): readonly ScanSample[] {
  const { latest, entryCount, checkedAtMs } = before
  const chain = latest === null ? newer : [{ status: latest.status, atMs: countsFromMs(latest) }, ...newer]
  const firstNth = latest === null ? 1 : entryCount
  return chain.flatMap(({ status, atMs }, at): ScanSample[] => {
    const next = chain[at + 1]
    const toMs = next?.atMs ?? askedAtMs
    if (toMs === null || status === FINISHED) return []
    // The part of this wait that an earlier poll saw was learnt then.
    const fromMs = Math.max(atMs, checkedAtMs ?? atMs)
    return [{ kind: 'wait', status, entryCount: firstNth + at, fromMs, toMs, scanned: next !== undefined }]
  })
}

/** The new entries with their numbers. Only a poll shows a complete history; entries that the poll before it showed were learnt then. */
function nthEntries({ checkedAtMs }: KnownBefore, oldestFirst: readonly Timed[]): readonly ScanSample[] {
  return oldestFirst.flatMap(({ status, atMs }, at): ScanSample[] =>
    atMs > (checkedAtMs ?? Number.NEGATIVE_INFINITY) ? [{ kind: 'place', status, entryCount: at + 1 }] : [],
  )
}

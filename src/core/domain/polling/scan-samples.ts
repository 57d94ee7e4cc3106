import type { Entry } from '../history/history.ts'
import type { PollObservation, PushObservation } from '../history/observation.ts'
import { countsFromMs, type LatestEntry } from '../history/parcel-state.ts'
import { notAhead } from '../instant.ts'
import { FINISHED } from './cadence.ts'
import type { ScanSample } from './scan-rate.ts'

/** The state of a parcel before an observation. */
export interface KnownBefore {
  readonly latest: LatestEntry | null
  readonly entryCount: number
  readonly checkedAtMs: number | null
  readonly lastSeenAtMs: number | null
}

export interface LearntAt {
  readonly nowMs: number
  /** The last sequence before the observation. A new entry has a greater one. */
  readonly knownTo: number
}

/**
 * Returns the samples of the scan rate that an observation gives. `entries`: for a poll the whole history, for a push the entries that it may
 * have changed. An entry that is older than a known one should split an earlier wait, but this is too rare to matter. The time of an entry
 * counts as no later than the time at which the relay learnt of it (DOMAIN 6.1).
 */
export function scanSamplesOf(
  before: KnownBefore,
  observation: PushObservation | PollObservation,
  entries: readonly Entry[],
  { nowMs, knownTo }: LearntAt,
): readonly ScanSample[] {
  const oldestFirst = entries.length < 2 ? entries : entries.toSorted((a, b) => a.atMs - b.atMs)
  const newer = oldestFirst.filter(({ atMs }) => before.latest === null || atMs > before.latest.atMs)
  // The relay learnt of a known entry at the last push or poll about the parcel, or earlier.
  const countsMs = ({ atMs, sequence }: Entry) => Math.min(atMs, sequence > knownTo ? nowMs : (before.lastSeenAtMs ?? nowMs))
  const timed = (all: readonly Entry[]) => all.map((entry) => ({ status: entry.status, atMs: countsMs(entry) }))
  return observation.kind === 'push'
    ? waits(before, timed(newer), null)
    : [...waits(before, timed(newer), notAhead(observation.askedAtMs, nowMs)), ...nthEntries(before, timed(oldestFirst))]
}

/** An entry's status and the time that counts for it (DOMAIN 6.1). */
interface Timed {
  readonly status: string
  readonly atMs: number
}

/** Returns the waits that ended with a new entry. For a poll, also returns the wait that still goes on. */
function waits(before: KnownBefore, newer: readonly Timed[], askedAtMs: number | null): readonly ScanSample[] {
  const { latest, entryCount, checkedAtMs } = before
  const chain = latest === null ? newer : [{ status: latest.status, atMs: countsFromMs(latest) }, ...newer]
  const firstNth = latest === null ? 1 : entryCount
  return chain.flatMap(({ status, atMs }, at): ScanSample[] => {
    const next = chain[at + 1]
    const toMs = next?.atMs ?? askedAtMs
    if (toMs === null || status === FINISHED) return []
    // The poll before this observation already gave a sample of the first part of this wait.
    const fromMs = Math.max(atMs, checkedAtMs ?? atMs)
    return [{ kind: 'wait', status, entryCount: firstNth + at, fromMs, toMs, scanned: next !== undefined }]
  })
}

/**
 * Returns the new entries of a poll with their positions in the history. An earlier poll gave the samples of entries before `checkedAtMs`. A
 * push gives no such samples, because it does not show a complete history.
 */
function nthEntries({ checkedAtMs }: KnownBefore, oldestFirst: readonly Timed[]): readonly ScanSample[] {
  return oldestFirst.flatMap(({ status, atMs }, at): ScanSample[] =>
    atMs > (checkedAtMs ?? Number.NEGATIVE_INFINITY) ? [{ kind: 'place', status, entryCount: at + 1 }] : [],
  )
}

import type { Entry } from '../history/history.ts'
import type { PollObservation, PushObservation } from '../history/observation.ts'
import { FINISHED } from './cadence.ts'
import type { ScanSample } from './scan-rate.ts'

/** What was known of a parcel before an observation. */
export interface KnownBefore {
  readonly latest: { readonly status: string; readonly atMs: number } | null
  readonly entryCount: number
  readonly checkedAtMs: number | null
}

/**
 * What an observation teaches of the carrier's rhythm. `entries`: of the touched part of the history as it stands now; for a poll, all.
 * Only what is newer than all that was known: an entry found between two known ones shows that the wait that was learnt was none, which is
 * too rare to unlearn.
 */
export function scanSamplesOf(
  before: KnownBefore,
  observation: PushObservation | PollObservation,
  entries: readonly Entry[],
): readonly ScanSample[] {
  const oldestFirst = entries.length < 2 ? entries : entries.toSorted((a, b) => a.atMs - b.atMs)
  const newer = oldestFirst.filter(({ atMs }) => before.latest === null || atMs > before.latest.atMs)
  return observation.kind === 'push'
    ? waits(before, newer, null)
    : [...waits(before, newer, observation.askedAtMs), ...places(before, oldestFirst)]
}

/** The waits that new entries ended and, of a poll, what it found still going on. */
function waits(before: KnownBefore, newer: readonly Entry[], askedAtMs: number | null): readonly ScanSample[] {
  const { latest, entryCount, checkedAtMs } = before
  const chain = latest === null ? newer : [latest, ...newer]
  const firstPlace = latest === null ? 1 : entryCount
  return chain.flatMap(({ status, atMs }, at): ScanSample[] => {
    const next = chain[at + 1]
    const toMs = next?.atMs ?? askedAtMs
    if (toMs === null || status === FINISHED) return []
    // What an earlier check found still going on was learnt then.
    const fromMs = Math.max(atMs, checkedAtMs ?? atMs)
    return [{ kind: 'wait', status, entryCount: firstPlace + at, fromMs, toMs, scanned: next !== undefined }]
  })
}

/** Only a poll shows a history whole; what the check before it showed was learnt then. */
function places({ checkedAtMs }: KnownBefore, oldestFirst: readonly Entry[]): readonly ScanSample[] {
  return oldestFirst.flatMap(({ status, atMs }, at): ScanSample[] =>
    atMs > (checkedAtMs ?? Number.NEGATIVE_INFINITY) ? [{ kind: 'place', status, entryCount: at + 1 }] : [],
  )
}
